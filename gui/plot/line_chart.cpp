#include "gui/plot/line_chart.h"

#include <QEvent>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "gui/look/ink.h"
#include "gui/look/theme.h"

namespace trivium::gui {

QColor LineChart::colour_of(const Line& line) const {
  constexpr int kLighter = 150;  // per cent
  const bool lost = !line.filled && is_dark(palette()) && ink_on(line.colour) == QColor(Qt::white);
  return lost ? line.colour.lighter(kLighter) : line.colour;
}

void LineChart::show_legend() {
  std::vector<LegendEntry> legend;
  for (const Line& line : lines_) {
    if (!line.name.isEmpty()) legend.push_back({colour_of(line), line.name});
  }
  set_legend(std::move(legend));
}

void LineChart::changeEvent(QEvent* event) {
  Chart::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) show_legend();
}

void LineChart::set_lines(std::vector<Line> lines, Axis x, Axis y, double limit, bool from_zero) {
  lines_ = std::move(lines);
  x_ = std::move(x);
  y_ = std::move(y);
  limit_ = limit;
  show_legend();
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

std::vector<QPointF> LineChart::seen(const Line& line) const {
  struct Column {
    std::size_t first = 0, low = 0, high = 0, last = 0;
    double pixel = 0;
  };
  std::vector<QPointF> seen;
  const auto add = [&](const Column& column) {
    std::array<std::size_t, 4> order{column.first, column.low, column.high, column.last};
    std::sort(order.begin(), order.end());
    const auto end = std::unique(order.begin(), order.end());
    for (auto at = order.begin(); at != end; ++at) {
      seen.push_back(place(x_, y_, line.points[*at].x(), line.points[*at].y()));
    }
  };
  std::optional<Column> open;
  for (std::size_t i = 0; i < line.points.size(); ++i) {
    const double pixel = std::floor(place(x_, y_, line.points[i].x(), 0).x());
    if (open && open->pixel != pixel) {
      add(*open);
      open.reset();
    }
    if (!open) open = Column{i, i, i, i, pixel};
    open->last = i;
    if (line.points[i].y() < line.points[open->low].y()) open->low = i;
    if (line.points[i].y() > line.points[open->high].y()) open->high = i;
  }
  if (open) add(*open);
  return seen;
}

QPolygonF LineChart::polygon_of(const Line& line) const {
  QPolygonF polygon;
  for (const QPointF& at : seen(line)) {
    if (line.staircase && !polygon.isEmpty()) polygon << QPointF(at.x(), polygon.last().y());
    polygon << at;
  }
  return polygon;
}

void LineChart::fill_below(QPainter& painter, const Line& line) const {
  if (!line.filled || line.points.empty()) return;
  QPolygonF polygon = polygon_of(line);
  polygon << QPointF(polygon.last().x(), area().bottom()) << QPointF(polygon.first().x(), area().bottom());
  QPainterPath path;
  path.addPolygon(polygon);
  path.closeSubpath();
  painter.setRenderHint(QPainter::Antialiasing, !line.staircase);  // edges on pixels leave no seams
  painter.fillPath(path, line.colour);
  painter.setRenderHint(QPainter::Antialiasing);
}

// Piece by piece: the time that Qt takes to smooth a line grows with the square of how often it crosses a row of
// pixels.
void LineChart::draw_line(QPainter& painter, const Line& line) const {
  constexpr qsizetype kPiece = 24;
  const QPolygonF polygon = polygon_of(line);
  painter.setPen(QPen(colour_of(line), 2));
  for (qsizetype i = 0; i + 1 < polygon.size(); i += kPiece) painter.drawPolyline(polygon.mid(i, kPiece + 1));
  if (line.points.size() == 1) painter.drawEllipse(polygon.last(), 3, 3);
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
    if (!line.points.empty() && !line.filled) draw_line(painter, line);
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
