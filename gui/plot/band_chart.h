// A range of values on one line, with its middle and one value that is marked.
#pragma once

#include <optional>

#include "gui/plot/chart.h"
#include "report/charts.h"

namespace trivium::gui {

class BandChart : public Chart {
 public:
  explicit BandChart(const QString& accessible_name, QWidget* parent = nullptr);

  /// Nothing: the hint is shown. `marked_as`: what the marked value is. The middle is drawn where it has a colour.
  void set_band(std::optional<report::Band> band, const QString& marked_as, std::function<QString(double)> text);
  const std::optional<report::Band>& band() const { return band_; }
  /// What stands for the band; of the middle, where it is known. Those of random variation at first.
  void set_colours(const QColor& band, const std::optional<QColor>& middle);
  const QColor& colour() const { return colour_; }
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return sizeHint(); }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::optional<report::Band> band_;
  QColor colour_;
  std::optional<QColor> middle_colour_;
  QString marked_as_;
  std::function<QString(double)> text_;
};

}  // namespace trivium::gui
