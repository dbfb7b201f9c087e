// Lines over a common axis; staircases too.
#pragma once

#include <QPolygonF>

#include "gui/plot/chart.h"

namespace trivium::gui {

struct Line {
  QString name;
  QColor colour;
  std::vector<QPointF> points;  ///< by ascending x
  bool staircase = false;       ///< a value holds until the next point
  bool filled = false;          ///< down to the filled line before it: a part of a sum
};

class LineChart : public Chart {
 public:
  using Chart::Chart;

  /// `limit`: a dashed line across; 0: none. Ranges of the axes follow from the points; `from_zero`: y begins at 0.
  void set_lines(std::vector<Line> lines, Axis x, Axis y, double limit, bool from_zero);
  const std::vector<Line>& lines() const { return lines_; }
  const Axis& x_axis() const { return x_; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  void show_legend();
  /// Lighter on dark ground, where a dark line would not be seen.
  QColor colour_of(const Line& line) const;
  /// Where a line's points are drawn: of those in one column of pixels the first, lowest, highest and last.
  std::vector<QPointF> seen(const Line& line) const;
  QPolygonF polygon_of(const Line& line) const;
  void fill_below(QPainter& painter, const Line& line) const;
  void draw_line(QPainter& painter, const Line& line) const;
  std::vector<Line> lines_;
  Axis x_, y_;
  double limit_ = 0;
};

}  // namespace trivium::gui
