#include "gui/plot/scatter_chart.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>
#include <limits>

#include "gui/look/theme.h"
#include "gui/model/plan_rows.h"

namespace trivium::gui {
namespace {

constexpr double kLabelShare = 0.55;  // of the width, at most
constexpr double kReach = 9;          // pixels within which a point is meant
constexpr double kBeside = 10;        // pixels from a point to its label
constexpr double kDot = 4;            // pixels: half of a point
constexpr int kRings = 6;             // round a point that are looked at for its label
constexpr double kLed = 16;           // pixels from a point to a label that a line leads to
constexpr double kCostOfDistance = 0.7, kCostOfPoint = 2, kCostOfFront = 3;

// The range of values with air around them.
void fit(Axis& axis, const std::vector<ScatterPoint>& points, double ScatterPoint::*member) {
  if (points.empty()) return;
  const auto [low, high] = std::minmax_element(points.begin(), points.end(),
                                               [&](const auto& a, const auto& b) { return a.*member < b.*member; });
  const double air = std::max(((*high).*member - (*low).*member) * 0.08, (*high).*member * 0.01);
  axis.low = (*low).*member - air;
  axis.high = (*high).*member + air;
  if (axis.high <= axis.low) axis.high = axis.low + 1;
}

/// Of a plan that others beat: a light blue on dark ground, a deep one on light.
QColor plan_colour(const QPalette& palette) { return series_colour(is_dark(palette) ? 4 : 0); }

}  // namespace

void ScatterChart::set_points(std::vector<ScatterPoint> points, Axis x, Axis y) {
  points_ = std::move(points);
  x_ = std::move(x);
  y_ = std::move(y);
  selected_ = -1;
  fit(x_, points_, &ScatterPoint::x);
  fit(y_, points_, &ScatterPoint::y);
  std::vector<std::pair<double, double>> pairs;
  for (const ScatterPoint& point : points_) pairs.emplace_back(point.x, point.y);
  front_ = pareto_front(pairs);
  show_legend();
  update();
}

void ScatterChart::show_legend() {
  set_legend({{plan_colour(palette()), "plan"}, {series_colour(5), "none of those shown is better in both"}});
}

void ScatterChart::set_selected(int point) {
  selected_ = point;
  update();
}

QPointF ScatterChart::place_of(int point) const {
  const ScatterPoint& p = points_.at(static_cast<std::size_t>(point));
  return place(x_, y_, p.x, p.y);
}

std::optional<int> ScatterChart::point_at(QPointF at) const {
  std::optional<int> nearest;
  double best = kReach * kReach;
  for (int i = 0; i < static_cast<int>(points_.size()); ++i) {
    const QPointF away = place_of(i) - at;
    const double distance = QPointF::dotProduct(away, away);
    if (distance > best) continue;
    best = distance;
    nearest = i;
  }
  return nearest;
}

void ScatterChart::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  if (points_.empty()) return draw_hint(painter);
  painter.setRenderHint(QPainter::Antialiasing);
  draw_axes(painter, x_, y_);
  painter.setPen(QPen(series_colour(5), 1.8));
  painter.drawPolyline(front_line());
  for (int i = 0; i < static_cast<int>(points_.size()); ++i) {
    const ScatterPoint& point = points_[static_cast<std::size_t>(i)];
    // A marked point often stands where one of the table does; only one of the two is counted to the front.
    const bool best = std::any_of(front_.begin(), front_.end(), [&](std::size_t other) {
      return points_[other].x == point.x && points_[other].y == point.y;
    });
    const double size = point.marked ? 6 : kDot;
    painter.setPen(QPen(i == selected_ ? palette().color(QPalette::WindowText) : palette().color(QPalette::Base),
                        i == selected_ ? 2 : 1));
    painter.setBrush(best ? series_colour(5) : plan_colour(palette()));
    if (point.marked) {
      painter.drawRect(QRectF(place_of(i).x() - size, place_of(i).y() - size, 2 * size, 2 * size));
    } else {
      painter.drawEllipse(place_of(i), size, size);
    }
  }
  draw_labels(painter);
  draw_legend(painter);
}

// Nothing is known of what lies between two plans: steps, not slopes.
QPolygonF ScatterChart::front_line() const {
  QPolygonF line;
  for (const std::size_t point : front_) {
    const QPointF at = place_of(static_cast<int>(point));
    if (!line.isEmpty()) line << QPointF(at.x(), line.last().y());
    line << at;
  }
  return line;
}

/// Near the point, where it covers no other label (names that lie on each other cannot be read), and as little as may
/// be of points and of the front.
QRectF ScatterChart::free_place(int point, QSizeF size, const std::vector<Label>& taken) const {
  const QPointF at = place_of(point);
  const QPolygonF line = front_line();
  const double wide = size.width(), high = size.height();
  const QRectF room = QRectF(rect()).adjusted(1, area().top(), -1, area().bottom() - height());
  QRectF best;
  double least = std::numeric_limits<double>::infinity();
  for (int ring = 0; ring < kRings; ++ring) {
    const double away = kBeside + ring * high * 0.75;
    const QPointF corners[] = {{away, -high / 2},        {away, -high - away / 2},        {-away - wide, -high / 2},
                               {away, away / 2},         {-wide / 2, -high - away},       {-wide / 2, away},
                               {-away - wide, away / 2}, {-away - wide, -high - away / 2}};
    for (const QPointF& corner : corners) {
      const QRectF box(at + corner, size);
      const bool free = room.contains(box) && std::none_of(taken.begin(), taken.end(), [&](const Label& other) {
                          return other.box.intersects(box);
                        });
      if (!free) continue;
      const QRectF near = box.adjusted(-kDot, -kDot, kDot, kDot);
      double cost = kCostOfDistance * ring;
      for (int i = 0; i < static_cast<int>(points_.size()); ++i) cost += near.contains(place_of(i)) ? kCostOfPoint : 0;
      for (qsizetype i = 1; i < line.size(); ++i) {  // its pieces are upright or level
        const QRectF piece = QRectF(line[i - 1], line[i]).normalized().adjusted(-1, -1, 1, 1);
        cost += piece.intersects(box) ? kCostOfFront : 0;
      }
      if (cost >= least) continue;
      least = cost;
      best = box;
    }
  }
  return best;
}

std::vector<ScatterChart::Label> ScatterChart::labels() const {
  const QFontMetricsF metrics(font());
  std::vector<Label> labels;
  for (int i = 0; i < static_cast<int>(points_.size()); ++i) {
    const ScatterPoint& point = points_[static_cast<std::size_t>(i)];
    if (!point.marked && i != selected_) continue;
    const QString words =
        point.marked ? point.name : metrics.elidedText(point.label, Qt::ElideRight, area().width() * kLabelShare);
    const QRectF box = free_place(i, {metrics.horizontalAdvance(words) + 4, metrics.height()}, labels);
    if (!box.isNull()) labels.push_back({box, words, i});
  }
  return labels;
}

void ScatterChart::draw_labels(QPainter& painter) const {
  painter.setPen(palette().color(QPalette::WindowText));
  QColor ground = palette().color(QPalette::Window);
  ground.setAlpha(200);
  for (const Label& label : labels()) {
    const QPointF at = place_of(label.point);
    const QPointF nearest(std::clamp(at.x(), label.box.left(), label.box.right()),
                          std::clamp(at.y(), label.box.top(), label.box.bottom()));
    if (QLineF(at, nearest).length() > kLed) {
      painter.setPen(QPen(quiet_colour(palette()), 1));
      painter.drawLine(at, nearest);
      painter.setPen(palette().color(QPalette::WindowText));
    }
    painter.fillRect(label.box, ground);
    painter.drawText(label.box, Qt::AlignCenter, label.text);
  }
}

void ScatterChart::mousePressEvent(QMouseEvent* event) {
  if (const auto point = point_at(event->position())) {
    set_selected(*point);
    if (on_select) on_select(*point);
  }
}

bool ScatterChart::event(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) show_legend();
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    if (const auto at = point_at(help->pos())) {
      const ScatterPoint& point = points_[static_cast<std::size_t>(*at)];
      QToolTip::showText(help->globalPos(), QString("%1\n%2, %3").arg(point.label, x_.text(point.x), y_.text(point.y)),
                         this);
    } else {
      QToolTip::hideText();
    }
    return true;
  }
  return Chart::event(event);
}

}  // namespace trivium::gui
