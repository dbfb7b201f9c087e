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
  set_legend({{plan_colour(palette()), "plan"}, {series_colour(5), "Pareto front: no plan is better in both"}});
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
  QPainterPath line;
  for (std::size_t i = 0; i < front_.size(); ++i) {
    const QPointF at = place_of(static_cast<int>(front_[i]));
    if (i == 0) {
      line.moveTo(at);
    } else {  // a staircase: nothing is known of what lies between two plans
      line.lineTo(QPointF(at.x(), line.currentPosition().y()));
      line.lineTo(at);
    }
  }
  painter.setPen(QPen(series_colour(5), 1.8));
  painter.drawPath(line);
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

/// Beside the point, where it covers no other label (names that lie on each other cannot be read) and the fewest
/// points.
QRectF ScatterChart::free_place(int point, QSizeF size, const std::vector<Label>& taken) const {
  const QPointF at = place_of(point);
  const double high = size.height();
  QRectF best;
  int fewest = std::numeric_limits<int>::max();
  for (const double down : {-1.4, 0.5, 1.7, 2.9}) {
    for (const double left : {at.x() + kBeside, at.x() - kBeside - size.width()}) {
      const QRectF box(QPointF(std::clamp(left, 0.0, std::max(0.0, width() - size.width() - 2)), at.y() + down * high),
                       size);
      const bool free =
          box.top() > 0 && box.bottom() < height() &&
          std::none_of(taken.begin(), taken.end(), [&](const Label& other) { return other.box.intersects(box); });
      if (!free) continue;
      const QRectF near = box.adjusted(-kDot, -kDot, kDot, kDot);
      int covered = 0;
      for (int i = 0; i < static_cast<int>(points_.size()); ++i) covered += near.contains(place_of(i)) ? 1 : 0;
      if (covered >= fewest) continue;
      fewest = covered;
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
    if (!box.isNull()) labels.push_back({box, words});
  }
  return labels;
}

void ScatterChart::draw_labels(QPainter& painter) const {
  painter.setPen(palette().color(QPalette::WindowText));
  QColor ground = palette().color(QPalette::Window);
  ground.setAlpha(200);
  for (const Label& label : labels()) {
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
