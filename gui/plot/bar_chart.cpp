#include "gui/plot/bar_chart.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <numeric>

#include "gui/look/theme.h"

namespace trivium::gui {
namespace {

constexpr double kWidest = 90;  // pixels of a bar
constexpr double kAir = 0.22;   // of a bar's place

}  // namespace

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
  update();
}

void BarChart::set_selected(int bar) {
  selected_ = bar;
  update();
}

double BarChart::highest() const {
  double most = 0;
  for (const Bar& bar : bars_) most = std::max({most, bar.sum(), bar.limit});
  return most > 0 ? most * 1.06 : 1;
}

QRectF BarChart::box(std::size_t bar) const {
  const QRectF inside = area();
  const double place = inside.width() / static_cast<double>(bars_.size());
  const double wide = std::min(kWidest, place * (1 - kAir));
  return {inside.left() + place * (static_cast<double>(bar) + 0.5) - wide / 2, inside.top(), wide, inside.height()};
}

std::optional<int> BarChart::bar_at(QPointF at) const {
  const QRectF inside = area();
  if (bars_.empty() || !inside.adjusted(0, 0, 0, 20).contains(at)) return std::nullopt;
  const double place = inside.width() / static_cast<double>(bars_.size());
  return std::clamp(static_cast<int>((at.x() - inside.left()) / place), 0, static_cast<int>(bars_.size()) - 1);
}

void BarChart::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  if (bars_.empty()) return draw_hint(painter);
  painter.setRenderHint(QPainter::Antialiasing);
  const Axis x{0, 1, {}, {}}, y{0, highest(), y_title_, text_, unit_};
  draw_axes(painter, x, y, false);
  const QRectF inside = area();
  const QFontMetricsF metrics(font());
  const double per_value = inside.height() / highest();
  double free_from = inside.left();
  for (std::size_t b = 0; b < bars_.size(); ++b) {
    const Bar& bar = bars_[b];
    QRectF column = box(b);
    double at = inside.bottom();
    for (std::size_t p = 0; p < bar.values.size(); ++p) {
      const double high = bar.values[p] * per_value;
      painter.fillRect(QRectF(column.left(), at - high, column.width(), high), parts_[p].colour);
      at -= high;
    }
    if (bar.limit > 0 && bar.sum() > bar.limit) {
      painter.setPen(QPen(alarm_colour(), 2));
      painter.drawRect(QRectF(column.left(), at, column.width(), inside.bottom() - at));
    }
    if (bar.limit > 0) {
      const double line = inside.bottom() - bar.limit * per_value;
      painter.setPen(
          QPen(bar.sum() > bar.limit ? alarm_colour() : palette().color(QPalette::WindowText), 1.6, Qt::DashLine));
      painter.drawLine(QPointF(column.left() - 4, line), QPointF(column.right() + 4, line));
    }
    if (static_cast<int>(b) == selected_) {
      painter.setPen(QPen(palette().color(QPalette::Highlight), 2));
      painter.drawRect(QRectF(column.left() - 3, at - 3, column.width() + 6, inside.bottom() - at + 6));
    }
    const double wide = metrics.horizontalAdvance(bar.label);
    const double left = column.center().x() - wide / 2;
    if (left >= free_from) {  // labels that would overlap are left out; hovering tells them
      painter.setPen(palette().color(QPalette::WindowText));
      painter.drawText(QRectF(left, inside.bottom() + 3, wide + 2, metrics.height()), Qt::AlignLeft, bar.label);
      free_from = left + wide + 8;
    }
  }
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
      if (bar.values[p] > 0) text += QString("<br>%1: %2").arg(parts_[p].name, text_(bar.values[p]));
    }
    QToolTip::showText(help->globalPos(), text, this);
    return true;
  }
  return Chart::event(event);
}

}  // namespace trivium::gui
