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
constexpr int kMostEnds = 64;     // pixels of a band's height for which is known where something ends
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
  std::uint64_t ends;                       // bit r: something reaches just pixel r, so that the one above differs

  /// Returns how many kinds there are to paint, listed in `seen`.
  std::size_t measure(const float* shares, int columns, std::size_t kinds, int height,
                      std::array<std::size_t, kMostKinds>& seen) {
    std::array<float, kAbreast> filled{}, share{};  // pixels, of a column
    std::size_t count = 0;
    for (std::size_t c = 0; c < kinds; ++c) {
      float any = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(columns); ++i) {
        const float one = shares[i * kinds + c];
        share[i] = one > 0 ? one : 0;
        any = one > any ? one : any;
      }
      if (any == 0) continue;
      for (std::size_t i = 0; i < kAbreast; ++i) {
        filled[i] += share[i] * static_cast<float>(height);
        reach[count][i] = std::min(height, static_cast<std::int32_t>(filled[i] + 0.5F));
      }
      seen[count++] = c;
    }
    ends = height < kMostEnds ? 0 : ~std::uint64_t{0};
    for (std::size_t k = 0; k < count && height < kMostEnds; ++k) {
      for (const std::int32_t pixel : reach[k]) ends |= std::uint64_t{1} << pixel;
    }
    for (std::size_t i = 0; i < kAbreast; ++i) {
      const bool whole = count > 0 && reach[count - 1][i] == height;
      idles_unseen[i] = whole && filled[i] < static_cast<float>(height) * kFull;
      busy_unseen[i] = count > 0 && reach[count - 1][i] == 0 && filled[i] > 0;
    }
    return count;
  }

  /// Whether a line's pixels are those of the line above it.
  bool is_as_above(std::int32_t pixel) const { return (ends >> (pixel % kMostEnds) & 1) == 0; }
};

/// Of a column, the kind with the largest share.
std::size_t largest(const float* shares, std::size_t kinds) {
  return static_cast<std::size_t>(std::max_element(shares, shares + kinds) - shares);
}

void paint_band(const float* shares, int width, const Hues& hues, QRgb lane, Lines lines, const Canvas& canvas) {
  const int height = lines.bottom - lines.top;
  const int first = std::max(0, lines.top), last = std::min(canvas.lines, lines.bottom);
  if (first >= last) return;
  Stacks stacks{};
  std::array<std::size_t, kMostKinds> seen{};
  std::array<QRgb, kAbreast> pixels{};
  for (int left = 0; left < width; left += kAbreast, shares += kAbreast * hues.kinds) {
    const int columns = std::min(kAbreast, width - left);
    const std::size_t count = stacks.measure(shares, columns, hues.kinds, height, seen);
    for (int y = first; y < last; ++y) {
      const std::int32_t above = lines.bottom - y;  // 1: the lowest pixel
      if (y == first || !stacks.is_as_above(above)) {
        pixels.fill(lane);
        for (std::size_t k = count; k > 0; --k) {  // the lower categories over the higher ones, which reach further
          const auto& reach = stacks.reach[k - 1];
          const QRgb hue = hues.rgb[seen[k - 1]];
          for (std::size_t i = 0; i < kAbreast; ++i) {  // by masks: compilers then take several columns at once
            const QRgb shown = 0U - static_cast<QRgb>(above <= reach[i]);
            pixels[i] = (hue & shown) | (pixels[i] & ~shown);
          }
        }
      }
      QRgb* const out = canvas.line(y) + left;
      columns == kAbreast ? std::copy_n(pixels.begin(), kAbreast, out)  // as a few stores: the length is known
                          : std::copy_n(pixels.begin(), columns, out);
    }
    for (int i = 0; i < columns && lines.bottom <= last; ++i) {
      if (!stacks.busy_unseen[static_cast<std::size_t>(i)]) continue;
      const std::size_t most = largest(shares + static_cast<std::size_t>(i) * hues.kinds, hues.kinds);
      canvas.line(lines.bottom - 1)[left + i] = mix(hues.rgb[most], lane, 128);
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
