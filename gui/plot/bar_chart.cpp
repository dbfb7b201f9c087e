#include "gui/plot/bar_chart.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "gui/look/theme.h"

namespace trivium::gui {
namespace {

constexpr double kWidest = 90;  // pixels of a bar
constexpr double kAir = 0.22;   // of a bar's place
constexpr double kRoom = 1.06;  // of the highest value, up to the upper end
constexpr double kSlim = 8;     // pixels from bar to bar, below which bars stand without air
constexpr double kLimitBeyond = 4;
constexpr double kLeastLabel = 10, kSlimLabelAir = 40;  // pixels

}  // namespace

double most_shown(const std::vector<Bar>& bars) {
  constexpr double kSeen = 0.05;  // of the height
  double sums = 0, limits = 0;
  for (const Bar& bar : bars) {
    sums = std::max(sums, bar.sum());
    limits = std::max(limits, bar.limit);
  }
  return sums > 0 && sums < kSeen * limits ? sums : std::max(sums, limits);
}

int label_step(double pitch, double widest) {
  constexpr int kMost = 1'000'000;
  for (int power = 1; power < kMost; power *= 10) {
    for (const int factor : {1, 2, 5}) {
      if (pitch * factor * power >= widest) return factor * power;
    }
  }
  return kMost;
}

double Bar::sum() const { return std::accumulate(values.begin(), values.end(), 0.0); }

void BarChart::set_bars(std::vector<BarPart> parts, std::vector<Bar> bars, QString y_title,
                        std::function<QString(double)> text, double unit) {
  unit_ = unit;
  parts_ = std::move(parts);
  bars_ = std::move(bars);
  y_title_ = std::move(y_title);
  text_ = std::move(text);
  std::vector<LegendEntry> legend;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const bool used = std::any_of(bars_.begin(), bars_.end(), [&](const Bar& bar) { return bar.values[p] > 0; });
    if (used) legend.push_back({parts_[p].colour, parts_[p].name});
  }
  set_legend(std::move(legend));
  if (selected_ >= static_cast<int>(bars_.size())) selected_ = bars_.empty() ? -1 : 0;
  const double most = most_shown(bars_);
  highest_ = most > 0 ? most * kRoom : 1;
  update();
}

std::optional<double> BarChart::limit_above() const {
  const auto most =
      std::max_element(bars_.begin(), bars_.end(), [](const Bar& a, const Bar& b) { return a.limit < b.limit; });
  if (most == bars_.end() || most->limit <= highest_) return std::nullopt;
  return most->limit;
}

void BarChart::set_selected(int bar) {
  selected_ = std::min(bar, static_cast<int>(bars_.size()) - 1);
  update();
}

BarChart::Frame BarChart::frame() const {
  const QRectF inside = area();
  return {inside, inside.height() / highest_, inside.width() / static_cast<double>(bars_.size())};
}

QRectF BarChart::box(const Frame& frame, std::size_t bar) const {
  const QRectF& inside = frame.inside;
  const double place = frame.pitch;
  const double wide = place < kSlim ? std::max(1.0, place) : std::min(kWidest, place * (1 - kAir));
  return {inside.left() + place * (static_cast<double>(bar) + 0.5) - wide / 2, inside.top(), wide, inside.height()};
}

std::vector<std::size_t> BarChart::drawn(const Frame& frame) const {
  std::vector<std::size_t> chosen;
  long last = -1;
  for (std::size_t b = 0; b < bars_.size(); ++b) {
    const long pixel = std::lround(std::floor(static_cast<double>(b) * frame.pitch));
    if (pixel != last) {
      chosen.push_back(b);
    } else if (bars_[b].sum() - bars_[b].limit > bars_[chosen.back()].sum() - bars_[chosen.back()].limit) {
      chosen.back() = b;
    }
    last = pixel;
  }
  return chosen;
}

std::optional<int> BarChart::bar_at(QPointF at) const {
  const QRectF inside = area();
  if (bars_.empty() || !inside.adjusted(0, 0, 0, 20).contains(at)) return std::nullopt;
  const double place = inside.width() / static_cast<double>(bars_.size());
  return std::clamp(static_cast<int>((at.x() - inside.left()) / place), 0, static_cast<int>(bars_.size()) - 1);
}

void BarChart::draw_bar(QPainter& painter, const Frame& frame, std::size_t b) const {
  const Bar& bar = bars_[b];
  const QRectF column = box(frame, b);
  const QRectF& inside = frame.inside;
  double at = inside.bottom();
  for (std::size_t p = 0; p < bar.values.size(); ++p) {
    const double high = bar.values[p] * frame.per_value;
    painter.fillRect(QRectF(column.left(), at - high, column.width(), high), parts_[p].colour);
    at -= high;
  }
  if (bar.limit > 0 && bar.sum() > bar.limit) {
    const double line = inside.bottom() - bar.limit * frame.per_value;
    if (frame.pitch < kSlim) {
      painter.fillRect(QRectF(column.left(), at, column.width(), line - at), alarm_colour());
    } else {
      painter.setPen(QPen(alarm_colour(), 2));
      painter.drawRect(QRectF(column.left(), at, column.width(), inside.bottom() - at));
    }
  }
  if (static_cast<int>(b) == selected_) {
    painter.setPen(QPen(palette().color(QPalette::Highlight), 2));
    painter.drawRect(QRectF(column.left() - 3, at - 3, column.width() + 6, inside.bottom() - at + 6));
  }
}

// Of slim bars neighbours with one limit share a line.
void BarChart::draw_limits(QPainter& painter, const Frame& frame) const {
  for (std::size_t b = 0; b < bars_.size();) {
    const double limit = bars_[b].limit;
    const QRectF first = box(frame, b);
    std::size_t end = b;
    bool too_full = false;
    do {
      too_full = too_full || bars_[end].sum() > limit;
      ++end;
    } while (frame.pitch < kSlim && end < bars_.size() && bars_[end].limit == limit);
    if (limit > 0 && limit <= highest_) {
      const double line = frame.inside.bottom() - limit * frame.per_value,
                   beyond = frame.pitch < kSlim ? 0 : kLimitBeyond;
      painter.setPen(QPen(too_full ? alarm_colour() : palette().color(QPalette::WindowText), 1.6, Qt::DashLine));
      painter.drawLine(QPointF(first.left() - beyond, line), QPointF(box(frame, end - 1).right() + beyond, line));
    }
    b = end;
  }
}

// Labels that would overlap are left out; hovering tells them.
void BarChart::draw_labels(QPainter& painter, const Frame& frame) const {
  const QFontMetricsF metrics(font());
  const QRectF& inside = frame.inside;
  double free_from = inside.left(), widest = 0;
  painter.setPen(palette().color(QPalette::WindowText));
  if (frame.pitch < kSlim) widest = metrics.horizontalAdvance(bars_.back().label) + kSlimLabelAir;
  const auto step = static_cast<std::size_t>(label_step(frame.pitch, widest));
  for (std::size_t b = 0; b < bars_.size(); b += step) {
    const double middle = inside.left() + frame.pitch * (static_cast<double>(b) + 0.5);
    const double least = middle - kLeastLabel / 2;
    if (least < free_from) continue;
    const double wide = metrics.horizontalAdvance(bars_[b].label);
    const double left = std::max(inside.left(), middle - wide / 2);
    if (left < free_from) continue;
    painter.drawText(QRectF(left, inside.bottom() + 3, wide + 2, metrics.height()), Qt::AlignLeft, bars_[b].label);
    free_from = left + wide + (frame.pitch < kSlim ? kSlimLabelAir : 8);
  }
}

void BarChart::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  if (bars_.empty()) return draw_hint(painter);
  const Frame now = frame();
  painter.setRenderHint(QPainter::Antialiasing, now.pitch >= kSlim);
  const Axis x{0, 1, {}, {}}, y{0, highest_, y_title_, text_, unit_, seconds_};
  draw_axes(painter, x, y, false);
  for (const std::size_t b : drawn(now)) draw_bar(painter, now, b);
  if (selected_ >= 0) draw_bar(painter, now, static_cast<std::size_t>(selected_));
  draw_limits(painter, now);
  draw_labels(painter, now);
  draw_legend(painter);
}

void BarChart::choose(int bar) {
  set_selected(bar);
  if (on_select) on_select(bar);
}

void BarChart::mousePressEvent(QMouseEvent* event) {
  if (const auto bar = bar_at(event->position())) choose(*bar);
}

void BarChart::keyPressEvent(QKeyEvent* event) {
  const int last = static_cast<int>(bars_.size()) - 1;
  if (event->key() == Qt::Key_Left && selected_ > 0) return choose(selected_ - 1);
  if (event->key() == Qt::Key_Right && selected_ < last) return choose(selected_ + 1);
  QWidget::keyPressEvent(event);
}

bool BarChart::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const auto at = bar_at(help->pos());
    if (!at) {
      QToolTip::hideText();
      return true;
    }
    const Bar& bar = bars_[static_cast<std::size_t>(*at)];
    QString text = QString("<b>%1</b>: %2").arg(bar.label.toHtmlEscaped(), text_(bar.sum()));
    if (bar.limit > 0) text += QString(" of %1").arg(text_(bar.limit));
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (bar.values[p] <= 0) continue;
      text += QString("<br>%1: %2").arg(parts_[p].name, text_(bar.values[p]));
      if (!parts_[p].help.isEmpty()) text += ", " + parts_[p].help;
    }
    QToolTip::showText(help->globalPos(), text, this);
    return true;
  }
  return Chart::event(event);
}

}  // namespace trivium::gui
