#include "gui/views/gain_chart.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "gui/look/text.h"
#include "gui/look/theme.h"
#include "planner/space/request.h"

namespace trivium::gui {
namespace {

constexpr double kRow = 1.7;         // lines of text
constexpr double kNameShare = 0.46;  // of the width

/// What matters of a refusal: "stage 0 needs 97.1 GiB of 80.0 GiB", not what the memory holds.
QString gist(const Sensitivity& gain) { return text(gain.refusal).section(": ", 0, 0); }

}  // namespace

double longest_bar(const std::vector<Sensitivity>& gains) {
  constexpr double kLeast = 0.001, kTimesMedian = 6;
  std::vector<double> sizes;
  for (const Sensitivity& gain : gains) {
    if (gain.refusal.empty() && std::abs(gain.gain) >= kLeast) sizes.push_back(std::abs(gain.gain));
  }
  if (sizes.empty()) return kLeast;
  std::sort(sizes.begin(), sizes.end());
  return std::min(sizes.back(), kTimesMedian * sizes[(sizes.size() - 1) / 2]);
}

void GainChart::set_gains(std::vector<Sensitivity> gains) {
  gains_ = std::move(gains);
  setMinimumHeight(gains_.empty() ? 0 : sizeHint().height());
  updateGeometry();
  update();
}

void GainChart::set_longest(double longest) {
  longest_ = longest;
  update();
}

QSize GainChart::sizeHint() const {
  const double rows = std::max<double>(3, static_cast<double>(gains_.size()));
  return {460, static_cast<int>(rows * row_height()) + 8};
}

double GainChart::row_height() const { return kRow * QFontMetricsF(font()).height(); }

bool GainChart::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return Chart::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const auto row = static_cast<std::size_t>(std::max(0.0, help->pos().y() / row_height()));
  QToolTip::showText(help->globalPos(), row < gains_.size() ? told(gains_[row]) : QString(), this);
  return true;
}

QString GainChart::told(const Sensitivity& gain) {
  QString words = text(gain.change + "\n" + gain.refusal).trimmed();
  if (gain.narrow) {
    words += QString("\nIt fits with a probability below %1 %: searches leave it out.")
                 .arg(100 * planner::kFitProbability, 0, 'f', 0);
  }
  return words;
}

void GainChart::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  if (gains_.empty()) return draw_hint(painter);
  painter.setRenderHint(QPainter::Antialiasing);
  const QFontMetricsF metrics(font());
  const double most = longest_ > 0 ? longest_ : longest_bar(gains_);
  const double names = width() * kNameShare, figures = metrics.horizontalAdvance("+000.0 %") + 8;
  const double middle = names + figures + (width() - names - 2 * figures) / 2;
  const double half = std::max(4.0, (width() - names - 2 * figures) / 2);
  const double row = row_height();
  painter.setPen(QPen(quiet_colour(palette()), 1));
  const auto bars = std::count_if(gains_.begin(), gains_.end(), [](const auto& gain) { return gain.refusal.empty(); });
  painter.drawLine(QPointF(middle, 0), QPointF(middle, static_cast<double>(bars) * row));
  for (std::size_t i = 0; i < gains_.size(); ++i) {
    const Sensitivity& gain = gains_[i];
    const QRectF line(0, static_cast<double>(i) * row, width(), row);
    painter.setPen(palette().color(QPalette::WindowText));
    painter.drawText(QRectF(4, line.top(), names - 8, row), Qt::AlignVCenter | Qt::AlignLeft,
                     metrics.elidedText(text(gain.change), Qt::ElideMiddle, names - 8));
    if (!gain.refusal.empty()) {
      painter.setPen(palette().color(QPalette::PlaceholderText));
      const QRectF rest(names, line.top(), width() - names - 4, row);
      painter.drawText(rest, Qt::AlignVCenter, metrics.elidedText(gist(gain), Qt::ElideRight, rest.width()));
      continue;
    }
    const QString size = QString::number(std::abs(100 * gain.gain), 'f', 1);
    const bool faster = gain.gain < 0 && size != "0.0";  // what rounds to nothing stands on one side
    const bool cut = std::abs(gain.gain) > most;
    const double wide = std::min(1.0, std::abs(gain.gain) / most) * half;
    painter.fillRect(QRectF(faster ? middle - wide : middle, line.top() + row * 0.18, wide, row * 0.64),
                     faster ? series_colour(2) : series_colour(5));
    if (cut) {  // two strokes across the bar: it is longer than it is drawn
      painter.setPen(QPen(palette().color(QPalette::Window), 2));
      for (const double at : {0.8, 0.86}) {
        const double x = faster ? middle - wide * at : middle + wide * at;
        painter.drawLine(QPointF(x - 3, line.top() + row * 0.86), QPointF(x + 3, line.top() + row * 0.14));
      }
      painter.setPen(palette().color(QPalette::WindowText));
    }
    const QString figure = (size == "0.0" ? "" : faster ? "−" : "+") + size + " %";
    const QRectF place = faster ? QRectF(middle - wide - figures, line.top(), figures - 4, row)
                                : QRectF(middle + wide + 4, line.top(), figures, row);
    painter.drawText(place, Qt::AlignVCenter | (faster ? Qt::AlignRight : Qt::AlignLeft), figure);
    if (!gain.narrow || !faster) continue;
    painter.setPen(palette().color(QPalette::PlaceholderText));
    const QRectF rest(middle + 4, line.top(), width() - middle - 4, row);
    painter.drawText(rest, Qt::AlignVCenter, metrics.elidedText("fits narrowly", Qt::ElideRight, rest.width()));
  }
}

}  // namespace trivium::gui
