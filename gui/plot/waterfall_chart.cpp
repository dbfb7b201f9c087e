#include "gui/plot/waterfall_chart.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/look/theme.h"

namespace trivium::gui {
namespace {

constexpr double kWorth = 5e-4;      // of the larger sum: a step below it is left out
constexpr double kCutBelow = 0.5;    // of the least sum: all steps together
constexpr double kLines = 1.45;      // of the height of text: a row
constexpr double kTallest = 26;      // pixels of a row
constexpr double kNameShare = 0.34;  // of the width, at most
constexpr double kFigures = 78;      // pixels for a figure after a bar

}  // namespace

void WaterfallChart::set_steps(const QString& first_name, double first, const QString& last_name,
                               std::vector<WaterfallStep> steps, std::function<QString(double)> text) {
  first_name_ = first_name;
  last_name_ = last_name;
  first_ = first;
  double sum = first;
  for (const WaterfallStep& step : steps) sum += step.change;
  const double least = kWorth * std::max(first, sum);
  double small = 0;
  steps_.clear();
  for (WaterfallStep& step : steps) {
    if (std::abs(step.change) < least) {
      small += step.change;
    } else {
      steps_.push_back(std::move(step));
    }
  }
  if (small != 0) steps_.push_back({"the rest", small, quiet_colour(palette())});
  text_ = std::move(text);
  updateGeometry();
  update();
}

double WaterfallChart::last() const {
  double sum = first_;
  for (const WaterfallStep& step : steps_) sum += step.change;
  return sum;
}

QSize WaterfallChart::sizeHint() const {
  return {420, static_cast<int>(static_cast<double>(steps_.size() + 2) * QFontMetricsF(font()).height() * kLines) + 8};
}

// Names and figures of all rows can be read.
QSize WaterfallChart::minimumSizeHint() const {
  const double rows = static_cast<double>(steps_.size() + 2);
  return {240, std::max(70, static_cast<int>(std::ceil(rows * QFontMetricsF(font()).height())) + 4)};
}

double WaterfallChart::row_height() const {
  return std::min(kTallest, (height() - 4.0) / static_cast<double>(steps_.size() + 2));
}

double WaterfallChart::names_width() const {
  const QFontMetricsF metrics(font());
  double wide = std::max(metrics.horizontalAdvance(first_name_), metrics.horizontalAdvance(last_name_));
  for (const WaterfallStep& step : steps_) wide = std::max(wide, metrics.horizontalAdvance(step.name));
  return std::min(wide + 10, width() * kNameShare);
}

WaterfallChart::Range WaterfallChart::range() const {
  double sum = first_, low = first_, high = first_;
  for (const WaterfallStep& step : steps_) {
    sum += step.change;
    low = std::min(low, sum);
    high = std::max(high, sum);
  }
  if (high - low < kCutBelow * low) return {low - std::max(0.25 * (high - low), 0.002 * low), high, true};
  return {std::min(0.0, low), std::max(high, 1e-12), false};
}

double WaterfallChart::x_of(double value, const Range& range) const {
  const double left = names_width() + 6, room = std::max(10.0, width() - left - kFigures);
  return left + (value - range.low) / (range.high - range.low) * room;
}

QString WaterfallChart::change_text(double change) const { return (change < 0 ? "−" : "+") + text_(std::abs(change)); }

QRectF WaterfallChart::box_of(std::size_t step) const {
  double from = first_;
  for (std::size_t s = 0; s < step; ++s) from += steps_[s].change;
  const double to = from + steps_.at(step).change, high = row_height();
  const Range whole = range();
  const double left = x_of(std::min(from, to), whole), right = x_of(std::max(from, to), whole);
  return {left, 2 + high * static_cast<double>(step + 1) + 2, std::max(1.0, right - left), high - 4};
}

void WaterfallChart::draw_sum(QPainter& painter, const Range& range, std::size_t row, const QString& name,
                              double value) const {
  const QFontMetricsF metrics(font());
  const double top = 2 + row_height() * static_cast<double>(row), left = names_width() + 6;
  const QRectF bar(left, top + 2, x_of(value, range) - left, row_height() - 4);
  painter.fillRect(bar, quiet_colour(palette()));
  if (range.cut) {  // two strokes across
    painter.setPen(QPen(palette().color(QPalette::Window), 2));
    for (const double at : {10.0, 15.0})
      painter.drawLine(QPointF(left + at, bar.bottom()), QPointF(left + at + 5, bar.top()));
  }
  painter.setPen(palette().color(QPalette::WindowText));
  painter.drawText(QRectF(0, top, names_width(), row_height()), Qt::AlignVCenter | Qt::AlignRight,
                   metrics.elidedText(name, Qt::ElideRight, names_width()));
  painter.drawText(QRectF(bar.right() + 5, top, kFigures, row_height()), Qt::AlignVCenter | Qt::AlignLeft,
                   text_(value));
}

void WaterfallChart::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  if (!text_) return draw_hint(painter);
  const QFontMetricsF metrics(font());
  const Range whole = range();
  draw_sum(painter, whole, 0, first_name_, first_);
  double sum = first_;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const WaterfallStep& step = steps_[s];
    const QRectF box = box_of(s);
    painter.setPen(QPen(quiet_colour(palette()), 1));
    painter.drawLine(QPointF(x_of(sum, whole), box.top() - 4), QPointF(x_of(sum, whole), box.bottom()));
    sum += step.change;
    painter.fillRect(box, step.colour);
    painter.setPen(palette().color(QPalette::WindowText));
    painter.drawText(QRectF(0, box.top() - 2, names_width(), row_height()), Qt::AlignVCenter | Qt::AlignRight,
                     metrics.elidedText(step.name, Qt::ElideRight, names_width()));
    painter.drawText(QRectF(box.right() + 5, box.top() - 2, kFigures, row_height()), Qt::AlignVCenter | Qt::AlignLeft,
                     change_text(step.change));
  }
  draw_sum(painter, whole, steps_.size() + 1, last_name_, sum);
}

}  // namespace trivium::gui
