#include "gui/plot/line_chart.h"

#include <QPainter>
#include <algorithm>
#include <limits>

#include "gui/look/theme.h"

namespace trivium::gui {

void LineChart::set_lines(std::vector<Line> lines, Axis x, Axis y, double limit, bool from_zero) {
  lines_ = std::move(lines);
  x_ = std::move(x);
  y_ = std::move(y);
  limit_ = limit;
  std::vector<LegendEntry> legend;
  for (const Line& line : lines_) legend.push_back({line.colour, line.name});
  set_legend(std::move(legend));
  constexpr double kFar = std::numeric_limits<double>::infinity();
  double left = kFar, right = -kFar, low = from_zero ? 0 : kFar, high = limit > 0 ? limit : -kFar;
  for (const Line& line : lines_) {
    for (const QPointF& point : line.points) {
      left = std::min(left, point.x());
      right = std::max(right, point.x());
      low = std::min(low, point.y());
      high = std::max(high, point.y());
    }
  }
  x_.low = left;
  x_.high = right > left ? right : left + 1;
  const double air = high > low ? (high - low) * 0.06 : 1;
  y_.low = from_zero ? 0 : low - air;
  y_.high = high + air;
  update();
}

QPainterPath LineChart::path_of(const Line& line) const {
  QPainterPath path(place(x_, y_, line.points[0].x(), line.points[0].y()));
  for (const QPointF& point : line.points) {
    const QPointF at = place(x_, y_, point.x(), point.y());
    if (line.staircase) path.lineTo(QPointF(at.x(), path.currentPosition().y()));
    path.lineTo(at);
  }
  return path;
}

void LineChart::fill_below(QPainter& painter, const Line& line) const {
  if (!line.filled || line.points.empty()) return;
  QPainterPath path = path_of(line);
  path.lineTo(QPointF(path.currentPosition().x(), area().bottom()));
  path.lineTo(QPointF(place(x_, y_, line.points[0].x(), 0).x(), area().bottom()));
  path.closeSubpath();
  painter.setRenderHint(QPainter::Antialiasing, !line.staircase);  // edges on pixels leave no seams
  painter.fillPath(path, line.colour);
  painter.setRenderHint(QPainter::Antialiasing);
}

void LineChart::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  const bool empty = std::all_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.points.empty(); });
  if (empty) return draw_hint(painter);
  painter.setRenderHint(QPainter::Antialiasing);
  draw_axes(painter, x_, y_);
  painter.save();
  painter.setClipRect(area().adjusted(-2, -2, 2, 2));
  for (auto line = lines_.rbegin(); line != lines_.rend(); ++line) fill_below(painter, *line);  // the highest first
  for (const Line& line : lines_) {
    if (line.points.empty() || line.filled) continue;
    const QPainterPath path = path_of(line);
    painter.setPen(QPen(line.colour, 2));
    painter.drawPath(path);
    if (line.points.size() == 1) painter.drawEllipse(path.currentPosition(), 3, 3);
  }
  painter.restore();
  if (limit_ > 0) {
    const double at = place(x_, y_, x_.low, limit_).y();
    painter.setPen(QPen(palette().color(QPalette::WindowText), 1.6, Qt::DashLine));
    painter.drawLine(QPointF(area().left(), at), QPointF(area().right(), at));
  }
  draw_legend(painter);
}

}  // namespace trivium::gui
