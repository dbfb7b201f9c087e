// What one change would bring, as bars.
#pragma once

#include <vector>

#include "gui/model/sensitivity.h"
#include "gui/plot/chart.h"

namespace trivium::gui {

/// What the longest bar stands for: of some that are far longer than most, only the beginning is drawn.
double longest_bar(const std::vector<Sensitivity>& gains);

/// Bars to the left are faster, to the right slower.
class GainChart : public Chart {
 public:
  using Chart::Chart;
  void set_gains(std::vector<Sensitivity> gains);
  double longest() const { return longest_; }
  void set_longest(double longest);  ///< what the longest bar stands for, of charts that are read together
  const std::vector<Sensitivity>& gains() const { return gains_; }
  /// Of one of them, when it is hovered over.
  static QString told(const Sensitivity& gain);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  double row_height() const;

  std::vector<Sensitivity> gains_;
  double longest_ = 0;  // 0: of its own
};

}  // namespace trivium::gui
