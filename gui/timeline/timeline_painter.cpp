#include "gui/timeline/timeline_painter.h"

#include <QObject>
#include <algorithm>
#include <array>
#include <cmath>

#include "gui/look/ink.h"
#include "gui/timeline/strip_painter.h"

namespace trivium::gui {
namespace {

QRgb text_on(int hue) {
  static const std::array<QRgb, kHues> inks = [] {
    std::array<QRgb, kHues> made{};
    for (int h = 0; h < kHues; ++h) {
      const Colour colour = colour_of(h);
      made[static_cast<std::size_t>(h)] = ink_on(QColor(colour.red, colour.green, colour.blue)).rgb();
    }
    return made;
  }();
  return inks.at(static_cast<std::size_t>(hue));
}

/// The longest that fits of: the whole name; the op ("layer 3 matmul"); the op without its layer. Of an error the whole
/// name or its figure, which means something else without its end.
QString label_of(const SpanStore& store, std::uint32_t span, int room, Glyphs& glyphs) {
  QString name = QString::fromStdString(store.name_of(span));
  if (store.is_waiting(span)) name = QObject::tr("waiting: ") + name;
  const std::string& detail = store.details()[store.detail_of(span)];
  if (glyphs.width(name) <= room) return name;
  if (store.categories()[static_cast<std::size_t>(store.category_of(span))].hue >= kErrorHue) {
    name = name.section(" % ", 0, 0) + " %";
    return glyphs.width(name) <= room ? name : QString();
  }
  if (detail.empty()) return name;
  QString op = QString::fromStdString(detail);
  if (!op.startsWith("layer ") || glyphs.width(op) <= room) return op;
  return op.section(' ', 2);
}

}  // namespace

QColor colour_of(const CategoryInfo& category) {
  const Colour colour = colour_of(category.hue);
  return {colour.red, colour.green, colour.blue};
}

TimelineColours::TimelineColours(const QPalette& palette) {
  const QColor base = palette.color(QPalette::Base);
  const bool dark = base.lightness() < 128;
  ground = base.rgb();
  text = palette.color(QPalette::Text);
  lane = mix(ground, text.rgb(), dark ? 22 : 14);
  faint = QColor(mix(ground, text.rgb(), 150));
  line = QColor(mix(ground, text.rgb(), 50));
  path = dark ? QColor(255, 255, 255) : QColor(0, 0, 0);
  match = dark ? QColor(255, 221, 0) : QColor(204, 0, 102);
  arrow = text;
  arrow.setAlpha(150);
  selection = palette.color(QPalette::Highlight);
}

void TimelinePainter::paint(const Scene& scene, const DrawList& list, const TimelineColours& colours, const QFont& font,
                            QImage& image) {
  const qreal ratio = image.devicePixelRatio();
  if (!glyphs_ || font != font_ || ratio != ratio_) {
    font_ = font;
    ratio_ = ratio;
    QFont scaled = font;
    scaled.setPixelSize(static_cast<int>(std::lround(QFontInfo(font).pixelSize() * ratio)));
    glyphs_ = std::make_unique<Glyphs>(scaled);
  }
  paint_strips(scene, list, {colours.ground, colours.lane}, image);
  paint_frames(scene, list, colours, image);
  paint_marks(list, colours, image);
  QPainter painter(&image);
  paint_arrows(list, colours, painter);
}

void TimelinePainter::paint_frames(const Scene& scene, const DrawList& list, const TimelineColours& colours,
                                   QImage& image) {
  const qreal ratio = image.devicePixelRatio();
  for (const Frame& frame : list.frames) {
    const SpanStore& store = *scene.timelines[static_cast<std::size_t>(frame.timeline)].spans;
    const int left = static_cast<int>(std::lround(frame.x * ratio));
    const int top = static_cast<int>(std::lround(frame.y * ratio));
    const int height = static_cast<int>(std::lround(frame.height * ratio)) - kRowGap;
    if (left >= 0 && left < image.width()) {
      for (int y = std::max(0, top); y < std::min(image.height(), top + height); ++y) {
        auto& pixel = reinterpret_cast<QRgb*>(image.scanLine(y))[left];
        pixel = mix(pixel, colours.ground, 160);
      }
    }
    if (!frame.labelled) continue;
    const CategoryInfo& category = store.categories()[static_cast<std::size_t>(store.category_of(frame.span))];
    const int right = static_cast<int>(std::lround((frame.x + frame.width) * ratio));
    const int padding = static_cast<int>(std::lround(3 * ratio));
    const int from = std::max(0, left) + padding, to = std::min(image.width(), right) - padding;
    glyphs_->draw(image, from, top + (height - glyphs_->height()) / 2, to,
                  label_of(store, frame.span, to - from, *glyphs_), text_on(category.hue));
  }
}

void TimelinePainter::paint_marks(const DrawList& list, const TimelineColours& colours, QImage& image) {
  const qreal ratio = image.devicePixelRatio();
  const auto pixels = [&](float length) { return static_cast<int>(std::lround(length * ratio)); };
  for (const Mark& mark : list.marks) {
    const QRgb colour = (mark.path ? colours.path : colours.match).rgb();
    const int left = std::max(0, pixels(mark.x));
    const int right = std::min(image.width(), std::max(left + 1, pixels(mark.x + mark.width)));
    const int top = std::max(0, pixels(mark.y)), bottom = std::min(image.height(), pixels(mark.y + mark.height));
    for (int y = top; y < bottom; ++y) {
      auto* line = reinterpret_cast<QRgb*>(image.scanLine(y));
      if (left < right) std::fill(line + left, line + right, colour);
    }
  }
}

void TimelinePainter::paint_arrows(const DrawList& list, const TimelineColours& colours, QPainter& painter) {
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(colours.arrow, 1));
  painter.setBrush(colours.arrow);
  for (const Arrow& arrow : list.arrows) {
    const QPointF from(arrow.from_x, arrow.from_y), to(arrow.to_x, arrow.to_y);
    const QPointF way = to - from;
    const double length = std::hypot(way.x(), way.y());
    if (length < 1) continue;
    const QPointF along = way / length, across(-along.y(), along.x());
    constexpr double kHead = 6;
    painter.drawLine(from, to - along * kHead);
    painter.drawPolygon(
        QPolygonF({to, to - along * kHead + across * kHead / 2, to - along * kHead - across * kHead / 2}));
  }
}

}  // namespace trivium::gui
