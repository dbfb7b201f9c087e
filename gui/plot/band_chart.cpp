#include "gui/plot/band_chart.h"

#include <QPainter>
#include <algorithm>

#include "gui/look/ink.h"
#include "gui/look/theme.h"

namespace trivium::gui {
namespace {

constexpr double kLines = 3.6;  // of text: the median, the band, what is marked
constexpr double kAir = 0.15;   // of the range, left and right of it

}  // namespace

BandChart::BandChart(const QString& accessible_name, QWidget* parent)
    : Chart(accessible_name, parent), colour_(series_colour(4)), middle_colour_(series_colour(0)) {}

void BandChart::set_colours(const QColor& band, const std::optional<QColor>& middle) {
  colour_ = band;
  middle_colour_ = middle;
  updateGeometry();
  update();
}

void BandChart::set_band(std::optional<report::Band> band, const QString& marked_as,
                         std::function<QString(double)> text) {
  band_ = band;
  marked_as_ = marked_as;
  text_ = std::move(text);
  update();
}

QSize BandChart::sizeHint() const {
  const double lines = middle_colour_ ? kLines : kLines - 1;
  return {360, static_cast<int>(lines * QFontMetricsF(font()).height()) + 6};
}

void BandChart::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  if (!band_) return draw_hint(painter);
  painter.setRenderHint(QPainter::Antialiasing);
  const QFontMetricsF metrics(font());
  const double line = metrics.height();
  const double low = std::min(band_->low, band_->marked), high = std::max(band_->high, band_->marked);
  const double air = std::max((high - low) * kAir, high * 1e-6);
  const QString left = text_(band_->low), right = text_(band_->high);
  const double margin = std::max(metrics.horizontalAdvance(left), metrics.horizontalAdvance(right)) + 12;
  const auto x = [&](double value) {
    return margin + (value - low + air) / (high - low + 2 * air) * std::max(1.0, width() - 2 * margin);
  };
  const double top = line * (middle_colour_ ? 1.25 : 0.25), tall = line * 0.9;
  painter.fillRect(QRectF(x(band_->low), top, std::max(1.0, x(band_->high) - x(band_->low)), tall), colour_);
  if (middle_colour_) painter.fillRect(QRectF(x(band_->middle) - 1.5, top - 4, 3, tall + 8), *middle_colour_);
  const auto mark = [&](const QColor& colour, double from, double to) {
    painter.setPen(QPen(colour, 1.6, Qt::DashLine));
    painter.drawLine(QPointF(x(band_->marked), from), QPointF(x(band_->marked), to));
  };
  const bool inside = band_->low <= band_->marked && band_->marked <= band_->high;
  mark(palette().color(QPalette::WindowText), top - 5, top);
  mark(inside ? ink_on(colour_) : palette().color(QPalette::WindowText), top, top + tall);
  mark(palette().color(QPalette::WindowText), top + tall, top + tall + 5);
  painter.setPen(palette().color(QPalette::WindowText));
  painter.drawText(QRectF(0, top, x(band_->low) - 5, tall), Qt::AlignRight | Qt::AlignVCenter, left);
  painter.drawText(QRectF(x(band_->high) + 5, top, width(), tall), Qt::AlignLeft | Qt::AlignVCenter, right);
  const auto centred = [&](double at, double y, const QString& words) {
    const double wide = metrics.horizontalAdvance(words) + 2;
    painter.drawText(QRectF(std::clamp(at - wide / 2, 0.0, std::max(0.0, width() - wide)), y, wide, line),
                     Qt::AlignCenter, words);
  };
  if (middle_colour_) centred(x(band_->middle), 0, "median " + text_(band_->middle));
  centred(x(band_->marked), top + tall + 6, marked_as_ + " " + text_(band_->marked));
}

}  // namespace trivium::gui
