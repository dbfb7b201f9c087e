#include "gui/timeline/strip_painter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "gui/timeline/spans/on_cores.h"

namespace trivium::gui {
namespace {

constexpr std::size_t kMostKinds = 32;
constexpr int kAbreast = 16;      // columns that are painted together: a cache line of pixels
constexpr float kFull = 0.9995F;  // of a column: what lacks is rounding

/// The colours of a store's categories.
struct Hues {
  explicit Hues(const SpanStore& store) : kinds(store.categories().size()) {
    for (std::size_t c = 0; c < kinds; ++c) {
      const Colour colour = colour_of(store.categories()[c].hue);
      rgb[c] = qRgb(colour.red, colour.green, colour.blue);
    }
  }
  std::size_t kinds;
  std::array<QRgb, kMostKinds> rgb{};
};

/// The picture as threads may write to it: each its own lines.
struct Canvas {
  explicit Canvas(QImage& image)
      : bits(image.bits()), stride(image.bytesPerLine()), lines(image.height()), width(image.width()) {}
  QRgb* line(int y) const { return reinterpret_cast<QRgb*>(bits + y * stride); }
  uchar* bits;
  qsizetype stride;
  int lines, width;
};

/// The lines of a band, which may reach beyond the picture.
struct Lines {
  Lines(const Strip& strip, qreal ratio)
      : top(static_cast<int>(std::lround(strip.y * ratio))),
        bottom(static_cast<int>(std::lround((strip.y + strip.height) * ratio)) - kRowGap) {}
  int top, bottom;
};

/// Some columns of a band, side by side: up to which pixel from below each category reaches, those below it included.
struct Stacks {
  std::array<std::array<std::int32_t, kAbreast>, kMostKinds> reach;
  std::array<bool, kAbreast> idles_unseen;  // full by its pixels, though not by its shares
  std::array<bool, kAbreast> busy_unseen;   // the other way round
  std::array<std::size_t, kAbreast> most;   // the kind with the largest share

  /// Returns how many kinds there are to paint, listed in `seen`.
  std::size_t measure(const float* shares, int columns, std::size_t kinds, int height,
                      std::array<std::size_t, kMostKinds>& seen) {
    std::array<float, kAbreast> filled{}, largest{};  // pixels, share
    std::size_t count = 0;
    most.fill(0);
    for (std::size_t c = 0; c < kinds; ++c) {
      float any = 0;
      for (int i = 0; i < columns; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const float share = std::max(0.F, shares[at * kinds + c]);
        any += share;
        if (share > largest[at]) largest[at] = share, most[at] = c;
        filled[at] += share * static_cast<float>(height);
        reach[count][at] = std::min(height, static_cast<std::int32_t>(filled[at] + 0.5F));
      }
      if (any > 0) seen[count++] = c;
    }
    for (std::size_t i = 0; i < kAbreast; ++i) {
      const bool whole = count > 0 && reach[count - 1][i] == height;
      idles_unseen[i] = whole && filled[i] < static_cast<float>(height) * kFull;
      busy_unseen[i] = count > 0 && reach[count - 1][i] == 0 && filled[i] > 0;
    }
    return count;
  }
};

void paint_band(const float* shares, int width, const Hues& hues, QRgb lane, Lines lines, const Canvas& canvas) {
  const int height = lines.bottom - lines.top;
  const int first = std::max(0, lines.top), last = std::min(canvas.lines, lines.bottom);
  if (first >= last) return;
  Stacks stacks{};
  std::array<std::size_t, kMostKinds> seen{};
  std::array<QRgb, kAbreast> pixels{};
  for (int left = 0; left < width; left += kAbreast) {
    const int columns = std::min(kAbreast, width - left);
    const std::size_t count =
        stacks.measure(shares + static_cast<std::size_t>(left) * hues.kinds, columns, hues.kinds, height, seen);
    for (int y = first; y < last; ++y) {
      const std::int32_t above = lines.bottom - y;  // 1: the lowest pixel
      pixels.fill(lane);
      for (std::size_t k = count; k > 0; --k) {  // the lower categories over the higher ones, which reach further
        const auto& reach = stacks.reach[k - 1];
        const QRgb hue = hues.rgb[seen[k - 1]];
        for (std::size_t i = 0; i < kAbreast; ++i) {  // by masks: compilers then take several columns at once
          const QRgb shown = 0U - static_cast<QRgb>(above <= reach[i]);
          pixels[i] = (hue & shown) | (pixels[i] & ~shown);
        }
      }
      std::copy_n(pixels.begin(), columns, canvas.line(y) + left);
    }
    for (int i = 0; i < columns && lines.bottom <= last; ++i) {
      if (!stacks.busy_unseen[static_cast<std::size_t>(i)]) continue;
      canvas.line(lines.bottom - 1)[left + i] = mix(hues.rgb[stacks.most[static_cast<std::size_t>(i)]], lane, 128);
    }
    if (lines.top < 0) continue;
    for (int i = 0; i < columns; ++i) {
      if (!stacks.idles_unseen[static_cast<std::size_t>(i)]) continue;
      const QRgb below = height > 1 && lines.top + 1 < last ? canvas.line(lines.top + 1)[left + i] : lane;
      canvas.line(lines.top)[left + i] = mix(below, lane, 128);
    }
  }
}

// Where no band lies: the gaps between rows, and the page below the last.
void paint_page(const DrawList& list, QRgb page, qreal ratio, int width, const Canvas& canvas) {
  std::vector<bool> covered(static_cast<std::size_t>(canvas.lines));
  for (const Strip& strip : list.strips) {
    const Lines lines(strip, ratio);
    for (int y = std::max(0, lines.top); y < std::min(canvas.lines, lines.bottom); ++y) {
      covered[static_cast<std::size_t>(y)] = true;
    }
  }
  for (int y = 0; y < canvas.lines; ++y) {
    const int from = covered[static_cast<std::size_t>(y)] ? width : 0;
    std::fill(canvas.line(y) + from, canvas.line(y) + canvas.width, page);
  }
}

}  // namespace

QRgb mix(QRgb a, QRgb b, int share_of_b) {
  const auto channel = [&](int x, int y) { return x + (y - x) * share_of_b / 256; };
  return qRgb(channel(qRed(a), qRed(b)), channel(qGreen(a), qGreen(b)), channel(qBlue(a), qBlue(b)));
}

void paint_strips(const Scene& scene, const DrawList& list, const StripGround& ground, QImage& image) {
  const qreal ratio = image.devicePixelRatio();
  const int width = std::min(list.columns, image.width());
  const Canvas canvas(image);
  paint_page(list, ground.page, ratio, width, canvas);
  std::vector<Hues> hues;
  for (const SceneTimeline& timeline : scene.timelines) hues.emplace_back(*timeline.spans);
  on_cores(list.strips.size(), list.shares.size(), [&](std::size_t s) {
    const Strip& strip = list.strips[s];
    paint_band(list.shares.data() + strip.first, width, hues[static_cast<std::size_t>(strip.timeline)], ground.lane,
               Lines(strip, ratio), canvas);
  });
}

}  // namespace trivium::gui
