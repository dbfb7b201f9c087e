// How one sum becomes another, step by step.
#pragma once

#include <functional>

#include "gui/plot/chart.h"

namespace trivium::gui {

struct WaterfallStep {
  QString name;
  double change = 0;
  QColor colour;
};

/// A row for the first sum, one for every step that begins where the one before ended, and one for the last sum. Where
/// all sums are far from zero the axis begins further up, and the bars of the sums are marked as cut.
class WaterfallChart : public Chart {
 public:
  using Chart::Chart;

  /// Steps of no weight are left out; the last sum is the first with all changes.
  void set_steps(const QString& first_name, double first, const QString& last_name, std::vector<WaterfallStep> steps,
                 std::function<QString(double)> text);
  void clear() { set_steps({}, 0, {}, {}, {}); }
  const std::vector<WaterfallStep>& steps() const { return steps_; }
  double last() const;
  /// From where to where the bar of a step is drawn.
  QRectF box_of(std::size_t step) const;

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  struct Range {
    double low = 0, high = 1;
    bool cut = false;
  };
  Range range() const;
  double row_height() const;
  double names_width() const;
  double x_of(double value, const Range& range) const;
  QString change_text(double change) const;
  void draw_sum(QPainter& painter, const Range& range, std::size_t row, const QString& name, double value) const;

  QString first_name_, last_name_;
  double first_ = 0;
  std::vector<WaterfallStep> steps_;
  std::function<QString(double)> text_;
};

}  // namespace trivium::gui
