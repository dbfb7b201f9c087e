// What one change would bring, as bars.
#pragma once

#include <vector>

#include "gui/model/sensitivity.h"
#include "gui/plot/chart.h"

namespace trivium::gui {

/// Bars to the left are faster, to the right slower.
class GainChart : public Chart {
 public:
  using Chart::Chart;
  void set_gains(std::vector<Sensitivity> gains);
  const std::vector<Sensitivity>& gains() const { return gains_; }
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  double row_height() const;

  std::vector<Sensitivity> gains_;
};

}  // namespace trivium::gui
