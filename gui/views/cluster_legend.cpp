#include "gui/views/cluster_legend.h"

#include <QBuffer>
#include <algorithm>
#include <cmath>

#include "base/readable.h"
#include "base/units.h"
#include "gui/look/theme.h"

namespace trivium::gui {
namespace {

constexpr int kChip = 12;  // pixels
constexpr int kGap = 6, kBetween = 16;
constexpr int kScaleWidth = 140;
constexpr int kMostChips = 8;                                          // more have names that nobody looks up
constexpr int kColours = 24;                                           // after which series_colour repeats
constexpr double kThickness = 8;                                       // pixels of the sample link, at most
constexpr double kOwnRing = 0.2, kLeastOwnRing = 2, kMostOwnRing = 5;  // of a device's width, pixels, pixels
constexpr double kRing = 0.1, kLeastRing = 1, kMostRing = 3;           // the same of groups

/// Of the ranks that a colour tells apart: how many there are, and what one is called.
struct Axis {
  int size = 1;
  QString letter, name;
};

Axis axis_of(const program::Mesh& mesh, DeviceColour colour) {
  switch (colour) {
    case DeviceColour::kPipeline:
      return {mesh.pipeline(), "p", "pipeline stage"};
    case DeviceColour::kTensor:
      return {mesh.tensor(), "t", "tensor rank"};
    case DeviceColour::kData:
      return {mesh.data(), "d", "data replica"};
    case DeviceColour::kContext:
      return {mesh.context(), "c", "context rank"};
    default:
      return {mesh.expert(), "e", "expert rank"};
  }
}

}  // namespace

double round_below(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  const double digits = value / power * (1 + 1e-12);  // what is round already stays
  return power * (digits >= 5 ? 5 : digits >= 2 ? 2 : 1);
}

ClusterLegend::ClusterLegend(QWidget* parent) : QWidget(parent) {
  setAccessibleName("Legend of colours");
  QSizePolicy policy(QSizePolicy::Ignored, QSizePolicy::Preferred);  // fixed, it would get the height of one line
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

void ClusterLegend::show_canvas(const ClusterCanvas& canvas, DeviceColour colour) {
  switch (colour) {
    case DeviceColour::kMemory:
      return say({{alarm_colour(), "more than there is"}}, "0 %", "100 % of a device's memory");
    case DeviceColour::kUtilisation:
      return say({}, "0 %", "100 % of an iteration busy");
    case DeviceColour::kTraffic:
      return say({}, "0",
                 QString("%1 sent an iteration")
                     .arg(QString::fromStdString(base::size(static_cast<std::int64_t>(canvas.most_sent())))));
    default:
      break;
  }
  const program::Program* simulated = canvas.program();
  if (simulated == nullptr) return say({{quiet_colour(palette()), "no plan that runs"}}, {}, {});
  const Axis axis = axis_of(simulated->mesh, colour);
  std::vector<Chip> chips;
  for (int i = 0; i < std::min(axis.size, kMostChips); ++i) {
    chips.push_back({series_colour(i), i == 0 ? QString("%1%2: %3 %2").arg(axis.letter).arg(i).arg(axis.name)
                                              : QString("%1%2").arg(axis.letter).arg(i)});
  }
  if (axis.size > kMostChips) {
    chips.back().words += QString(" … %1%2").arg(axis.letter).arg(axis.size - 1);
    if (axis.size > kColours) chips.back().words += QString(", colours repeat after %1").arg(kColours);
  }
  if (canvas.has_idle()) chips.push_back({quiet_colour(palette()), "idle"});
  say(std::move(chips), {}, {});
}

void ClusterLegend::say(std::vector<Chip> chips, QString least, QString most) {
  if (chips == chips_ && least == least_ && most == most_) return;  // all would be laid out anew
  chips_ = std::move(chips);
  least_ = std::move(least);
  most_ = std::move(most);
  setAccessibleDescription(words());
  setToolTip(words());
  updateGeometry();
  update();
}

QString ClusterLegend::words() const {
  QStringList all;
  if (!most_.isEmpty()) all << least_ + " (dark) to " + most_ + " (yellow)";
  for (const Chip& chip : chips_) all << chip.words;
  return all.join(", ");
}

int ClusterLegend::line_height() const { return std::max(kChip, fontMetrics().height()) + 4; }
QSize ClusterLegend::sizeHint() const { return {200, line_height()}; }
QSize ClusterLegend::minimumSizeHint() const { return {60, line_height()}; }

int ClusterLegend::heightForWidth(int width) const {
  const std::vector<QPoint> places = places_for(width);
  return places.empty() ? line_height() : places.back().y() + line_height();
}

// A scale has the first line to itself up to its end.
std::vector<QPoint> ClusterLegend::places_for(int width) const {
  std::vector<QPoint> places;
  QPoint at(0, 0);
  if (!most_.isEmpty()) {
    at.rx() += fontMetrics().horizontalAdvance(least_) + fontMetrics().horizontalAdvance(most_) + kScaleWidth +
               3 * kGap + kBetween;
  }
  for (const Chip& chip : chips_) {
    const int wide = kChip + kGap + fontMetrics().horizontalAdvance(chip.words);
    if (at.x() > 0 && at.x() + wide > width) at = {0, at.y() + line_height()};
    places.push_back(at);
    at.rx() += wide + kBetween;
  }
  return places;
}

void ClusterLegend::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const int top = (line_height() - kChip) / 2;
  const auto write = [&](int x, int y, const QString& words) {
    painter.setPen(palette().color(QPalette::WindowText));
    painter.drawText(QRect(x, y, width() - x, line_height()), Qt::AlignVCenter | Qt::AlignLeft, words);
    return x + fontMetrics().horizontalAdvance(words) + kGap;
  };
  if (!most_.isEmpty()) {
    const int x = write(0, 0, least_);
    for (int i = 0; i < kScaleWidth; ++i) {
      painter.fillRect(x + i, top, 1, kChip, scale_colour(static_cast<double>(i) / (kScaleWidth - 1)));
    }
    write(x + kScaleWidth + kGap, 0, most_);
  }
  const std::vector<QPoint> places = places_for(width());
  for (std::size_t i = 0; i < chips_.size(); ++i) {
    painter.fillRect(places[i].x(), places[i].y() + top, kChip, kChip, chips_[i].colour);
    write(places[i].x() + kChip + kGap, places[i].y(), chips_[i].words);
  }
}

void draw_ring(QPainter& painter, const QRectF& device, const LitGroup* group, const QPalette& palette) {
  const double share = device.width() * (group == nullptr ? kOwnRing : kRing);
  const double thick = group == nullptr ? std::clamp(std::floor(share), kLeastOwnRing, kMostOwnRing)
                                        : std::clamp(std::floor(share), kLeastRing, kMostRing);
  const QRectF line = QRectF(device.toAlignedRect()).adjusted(thick / 2, thick / 2, -thick / 2, -thick / 2);
  const auto draw = [&](QPalette::ColorRole role, Qt::PenStyle style) {
    painter.setPen(QPen(palette.color(role), thick, style, Qt::FlatCap, Qt::MiterJoin));
    painter.drawRect(line);
  };
  painter.setBrush(Qt::NoBrush);
  draw(QPalette::Base, Qt::SolidLine);
  draw(QPalette::WindowText, group == nullptr ? Qt::SolidLine : group->line);
}

QString ring_sample(const LitGroup& group, const QPalette& palette) {
  constexpr int kWide = 32, kHigh = 9, kThick = 2;  // pixels
  QPixmap sample(kWide, kHigh);
  sample.fill(palette.color(QPalette::Base));
  QPainter painter(&sample);
  painter.setPen(QPen(palette.color(QPalette::WindowText), kThick, group.line, Qt::FlatCap));
  painter.drawLine(QPointF(0, kHigh / 2.0), QPointF(kWide, kHigh / 2.0));
  painter.end();
  QByteArray bytes;
  QBuffer file(&bytes);
  file.open(QIODevice::WriteOnly);
  sample.save(&file, "PNG");
  return QString("<img src='data:image/png;base64,%1' width='%2' height='%3'>")
      .arg(QString::fromLatin1(bytes.toBase64()))
      .arg(kWide)
      .arg(kHigh);
}

QString link_scale_words(double bandwidth) {
  return QString("this thick: %1 from a device")
      .arg(QString::fromStdString(base::to_text(base::BytesPerSecond(bandwidth))));
}

void draw_link_scale(QPainter& painter, const QRectF& room, double bytes_per_s_per_pixel, const QPalette& palette) {
  if (bytes_per_s_per_pixel <= 0) return;
  const double bandwidth = round_below(bytes_per_s_per_pixel * kThickness);
  const double thick = std::max(1.0, bandwidth / bytes_per_s_per_pixel);
  const QString words = link_scale_words(bandwidth);
  const QFontMetrics metrics = painter.fontMetrics();
  const QRectF plate(room.left() + kGap, room.bottom() - metrics.height() - 2.0 * kGap,
                     metrics.horizontalAdvance(words) + 40 + 4.0 * kGap, metrics.height() + kGap);
  QColor ground = palette.color(QPalette::Window);
  ground.setAlpha(220);
  painter.fillRect(plate, ground);
  painter.fillRect(QRectF(plate.left() + kGap, plate.center().y() - thick / 2, 40, thick), link_colour(palette));
  painter.setPen(palette.color(QPalette::WindowText));
  painter.drawText(plate.adjusted(40 + 2.0 * kGap, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft, words);
}

}  // namespace trivium::gui
