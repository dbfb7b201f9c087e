#include "gui/plot/chart.h"

#include <QPainter>
#include <algorithm>

#include "base/units.h"
#include "gui/look/theme.h"
#include "gui/model/axis.h"

namespace trivium::gui {
namespace {

constexpr double kTickEvery = 90;  // pixels, about
constexpr double kTickEveryDown = 48;
constexpr double kSwatch = 11;
constexpr double kLegendLine = 1.25;  // of the height of text

QString tick_text(const Axis& axis, double value, const std::vector<double>& places) {
  if (!axis.seconds || places.size() < 2) return axis.text(value);
  return QString::fromStdString(seconds_tick(value, axis.high, (places[1] - places[0]) * axis.unit));
}

/// Round values of an axis on `room` pixels, about one in `every`; two at least, unless they have less than `least`
/// each.
std::vector<double> ticks_on(const Axis& axis, double room, double every, double least) {
  const auto most = static_cast<int>(room / least);
  int wanted = static_cast<int>(room / every);
  std::vector<double> places = ticks(axis.low / axis.unit, axis.high / axis.unit, wanted);
  while (places.size() < 2 && wanted < most) places = ticks(axis.low / axis.unit, axis.high / axis.unit, ++wanted);
  return places;
}

}  // namespace

double byte_unit(double most_bytes) { return most_bytes >= 2 * base::kGiB ? base::kGiB : base::kMiB; }

Chart::Chart(const QString& accessible_name, QWidget* parent) : QWidget(parent) {
  setAccessibleName(accessible_name);
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
}

void Chart::set_hint(const QString& hint) {
  hint_ = hint;
  update();
}

double Chart::left_edge() const {
  const QFontMetricsF metrics(font());
  return metrics.horizontalAdvance("0000 GiB") + metrics.height() * 1.4 + 10;
}

const QRectF& Chart::area() const {
  if (room_ && room_->size == size() && room_->font == font()) return room_->area;
  const QFontMetricsF metrics(font());
  const double left = left_edge();
  const double top = metrics.height() * (0.7 + kLegendLine * (legend_.empty() ? 0 : legend_places().back().second));
  const QRectF area(left, top, std::max(10.0, width() - left - metrics.height()),
                    std::max(10.0, height() - top - metrics.height() * 2.9));
  return room_.emplace(Room{size(), font(), area}).area;
}

QPointF Chart::place(const Axis& x, const Axis& y, double vx, double vy) const {
  const QRectF& inside = area();
  return {inside.left() + (vx - x.low) / (x.high - x.low) * inside.width(),
          inside.bottom() - (vy - y.low) / (y.high - y.low) * inside.height()};
}

void Chart::draw_axes(QPainter& painter, const Axis& x, const Axis& y, bool x_ticks) const {
  const QRectF inside = area();
  const QFontMetricsF metrics(font());
  const QPen grid(quiet_colour(palette()), 0.7), ink(palette().color(QPalette::WindowText));
  if (x_ticks) {
    const std::vector<double> places = ticks_on(x, inside.width(), kTickEvery, kTickEvery);
    for (const double tick : places) {
      const double value = tick * x.unit;
      const QString words = tick_text(x, value, places);
      if (words.isEmpty()) continue;  // between two that count
      const double at = place(x, y, value, y.low).x();
      painter.setPen(grid);
      painter.drawLine(QPointF(at, inside.top()), QPointF(at, inside.bottom()));
      painter.setPen(ink);
      const double wide = metrics.horizontalAdvance(words) + 2;
      const double left = std::min(at - wide / 2, width() - wide);
      const double below = inside.bottom() + metrics.height() / 2;  // where the lowest value of the other axis ends
      painter.drawText(QRectF(left, below, wide, metrics.height()), Qt::AlignCenter, words);
    }
  }
  const std::vector<double> places = ticks_on(y, inside.height(), kTickEveryDown, metrics.height() * 1.5);
  for (const double tick : places) {
    const double value = tick * y.unit;
    const double at = place(x, y, x.low, value).y();
    painter.setPen(grid);
    painter.drawLine(QPointF(inside.left(), at), QPointF(inside.right(), at));
    painter.setPen(ink);
    painter.drawText(QRectF(metrics.height() * 1.4, at - metrics.height() / 2,
                            inside.left() - metrics.height() * 1.4 - 5, metrics.height()),
                     Qt::AlignRight | Qt::AlignVCenter, tick_text(y, value, places));
  }
  painter.setPen(ink);
  painter.drawText(QRectF(inside.left(), height() - metrics.height() * 1.25, inside.width(), metrics.height() * 1.2),
                   Qt::AlignCenter, x.title);
  if (metrics.horizontalAdvance(y.title) > inside.height()) return;  // a low chart does without
  painter.save();
  painter.translate(metrics.height() * 0.15, inside.center().y() + inside.height() / 2);
  painter.rotate(-90);
  painter.drawText(QRectF(0, 0, inside.height(), metrics.height() * 1.2), Qt::AlignCenter, y.title);
  painter.restore();
}

void Chart::set_legend(std::vector<LegendEntry> entries) {
  legend_ = std::move(entries);
  room_.reset();
}

std::vector<std::pair<double, int>> Chart::legend_places() const {
  const QFontMetricsF metrics(font());
  std::vector<std::pair<double, int>> places;
  double at = left_edge();
  int line = 0;
  for (const LegendEntry& entry : legend_) {
    const double wide = kSwatch + 5 + metrics.horizontalAdvance(entry.text);
    if (at + wide > width() && at > left_edge()) {
      at = left_edge();
      ++line;
    }
    places.emplace_back(at, line);
    at += wide + 16;
  }
  places.emplace_back(0, line + 1);
  return places;
}

void Chart::draw_legend(QPainter& painter) const {
  const QFontMetricsF metrics(font());
  const std::vector<std::pair<double, int>> places = legend_places();
  for (std::size_t i = 0; i < legend_.size(); ++i) {
    const double top = metrics.height() * (0.2 + kLegendLine * places[i].second);
    painter.fillRect(QRectF(places[i].first, top + metrics.height() * 0.5 - kSwatch / 2, kSwatch, kSwatch),
                     legend_[i].colour);
    painter.setPen(palette().color(QPalette::WindowText));
    painter.drawText(QRectF(places[i].first + kSwatch + 5, top, width(), metrics.height()),
                     Qt::AlignVCenter | Qt::AlignLeft, legend_[i].text);
  }
}

void Chart::draw_hint(QPainter& painter) const {
  painter.setPen(palette().color(QPalette::PlaceholderText));
  painter.drawText(QRectF(rect()).adjusted(20, 10, -20, -10), Qt::AlignCenter | Qt::TextWordWrap, hint_);
}

}  // namespace trivium::gui
