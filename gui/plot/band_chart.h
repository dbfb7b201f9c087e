// A range of values on one line, with its middle and one value that is marked.
#pragma once

#include <optional>

#include "gui/plot/chart.h"
#include "report/charts.h"

namespace trivium::gui {

class BandChart : public Chart {
 public:
  using Chart::Chart;

  /// Nothing: the hint is shown. `marked_as`: what the marked value is.
  void set_band(std::optional<report::Band> band, const QString& marked_as, std::function<QString(double)> text);
  const std::optional<report::Band>& band() const { return band_; }
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return sizeHint(); }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::optional<report::Band> band_;
  QString marked_as_;
  std::function<QString(double)> text_;
};

}  // namespace trivium::gui
