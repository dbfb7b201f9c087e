#include "gui/timeline/timeline_painter.h"

#include <QObject>
#include <algorithm>
#include <array>
#include <cmath>

namespace trivium::gui {
namespace {

constexpr int kRowGap = 1;  // pixels of ground below every lane

struct Rgb {
  float red = 0, green = 0, blue = 0;
};

Rgb rgb_of(QRgb colour) {
  return {static_cast<float>(qRed(colour)), static_cast<float>(qGreen(colour)), static_cast<float>(qBlue(colour))};
}

std::array<Rgb, 32> colours_of(const SpanStore& store) {
  std::array<Rgb, 32> colours{};
  for (std::size_t c = 0; c < store.categories().size(); ++c) {
    const Colour colour = colour_of(store.categories()[c].hue);
    colours[c] = {static_cast<float>(colour.red), static_cast<float>(colour.green), static_cast<float>(colour.blue)};
  }
  return colours;
}

QRgb to_rgb(const Rgb& c) {
  const auto byte = [](float v) { return static_cast<int>(std::clamp(v + 0.5F, 0.F, 255.F)); };
  return qRgb(byte(c.red), byte(c.green), byte(c.blue));
}

QRgb mix(QRgb a, QRgb b, int share_of_b) {  // in 256ths
  const auto channel = [&](int x, int y) { return x + (y - x) * share_of_b / 256; };
  return qRgb(channel(qRed(a), qRed(b)), channel(qGreen(a), qGreen(b)), channel(qBlue(a), qBlue(b)));
}

/// Black or white, whichever is easier to read on the colour (luma of ITU-R BT.601).
QRgb text_on(const Colour& colour) {
  const int luma = (299 * colour.red + 587 * colour.green + 114 * colour.blue) / 1000;
  return luma > 140 ? qRgb(0, 0, 0) : qRgb(255, 255, 255);
}

/// The longest that fits of: the whole name; the op ("layer 3 matmul"); the op without its layer.
QString label_of(const SpanStore& store, std::uint32_t span, int room, Glyphs& glyphs) {
  QString name = QString::fromStdString(store.name_of(span));
  if (store.is_waiting(span)) name = QObject::tr("waiting: ") + name;
  const std::string& detail = store.details()[store.detail_of(span)];
  if (detail.empty() || glyphs.width(name) <= room) return name;
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
  image.fill(colours.ground);
  for (const Strip& strip : list.strips) {
    const SpanStore& store = *scene.timelines[static_cast<std::size_t>(strip.timeline)].spans;
    if (strip.stacked) {
      paint_group(store, list, strip, colours, image);
    } else {
      paint_lane(store, list, strip, colours, image);
    }
  }
  paint_frames(scene, list, colours, image);
  paint_marks(list, colours, image);
  QPainter painter(&image);
  paint_arrows(list, colours, painter);
}

void TimelinePainter::paint_lane(const SpanStore& store, const DrawList& list, const Strip& strip,
                                 const TimelineColours& colours, QImage& image) {
  const qreal ratio = image.devicePixelRatio();
  const int top = std::max(0, static_cast<int>(std::lround(strip.y * ratio)));
  const int bottom =
      std::min(image.height(), static_cast<int>(std::lround((strip.y + strip.height) * ratio)) - kRowGap);
  if (top >= bottom) return;
  const std::size_t kinds = store.categories().size();
  const std::array<Rgb, 32> hues = colours_of(store);
  const Rgb lane = rgb_of(colours.lane);
  const int width = std::min(list.columns, image.width());
  line_.resize(static_cast<std::size_t>(width));
  const float* shares = list.shares.data() + strip.first;
  for (int x = 0; x < width; ++x, shares += kinds) {
    float covered = 0;
    Rgb sum;
    for (std::size_t c = 0; c < kinds; ++c) {
      const float share = shares[c];
      covered += share;
      sum.red += share * hues[c].red;
      sum.green += share * hues[c].green;
      sum.blue += share * hues[c].blue;
    }
    const float rest = std::max(0.F, 1 - covered);
    line_[static_cast<std::size_t>(x)] =
        to_rgb({sum.red + rest * lane.red, sum.green + rest * lane.green, sum.blue + rest * lane.blue});
  }
  for (int y = top; y < bottom; ++y) {
    std::copy(line_.begin(), line_.end(), reinterpret_cast<QRgb*>(image.scanLine(y)));
  }
}

// Every column from the bottom up: categories one on the other, then what idles.
void TimelinePainter::paint_group(const SpanStore& store, const DrawList& list, const Strip& strip,
                                  const TimelineColours& colours, QImage& image) {
  const qreal ratio = image.devicePixelRatio();
  const int top = static_cast<int>(std::lround(strip.y * ratio));
  const int bottom = static_cast<int>(std::lround((strip.y + strip.height) * ratio)) - kRowGap;
  const int height = bottom - top;
  if (height <= 0 || bottom <= 0 || top >= image.height()) return;
  const std::size_t kinds = store.categories().size();
  const std::array<Rgb, 32> hues = colours_of(store);
  const int width = std::min(list.columns, image.width()), lines = image.height();
  const auto stride = image.bytesPerLine() / static_cast<qsizetype>(sizeof(QRgb));
  auto* pixels = reinterpret_cast<QRgb*>(image.bits());
  const float* shares = list.shares.data() + strip.first;
  for (int x = 0; x < width; ++x, shares += kinds) {
    int y = bottom - 1;
    const auto put = [&](QRgb colour) {
      if (y >= 0 && y < lines) pixels[y * stride + x] = colour;
      --y;
    };
    float filled = 0;  // in pixels, from the bottom
    for (std::size_t c = 0; c < kinds; ++c) {
      if (shares[c] <= 0) continue;
      filled += shares[c] * static_cast<float>(height);
      const QRgb colour = to_rgb(hues[c]);
      while (y >= top && static_cast<float>(bottom - y) <= filled + 0.5F) put(colour);
    }
    // What idles shows, however little it is.
    const bool idles = filled < static_cast<float>(height) * 0.9995F;
    if (idles && y < top) {
      y = top;
      put(mix(y + 1 < lines && y + 1 >= 0 ? pixels[(y + 1) * stride + x] : colours.lane, colours.lane, 128));
    }
    while (y >= top) put(colours.lane);
  }
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
                  label_of(store, frame.span, to - from, *glyphs_), text_on(colour_of(category.hue)));
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
