#include "report/validation_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "calibration/measurements/quantities.h"
#include "report/html.h"
#include "report/palette.h"

namespace trivium::report {
namespace {

using calibration::Bar;
using calibration::kPercent;
using calibration::ParityPoint;
using calibration::TimelinePair;
using calibration::ValidationGroup;

constexpr double kBand = 0.1;  // of the parity plot and of the lines next to the bars

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(text));
}

constexpr const char* kGrid = "#b4b9c0";
constexpr const char* kAxis = "#666666";

std::string line(double x1, double y1, double x2, double y2, const char* colour) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2, y2,
                     colour);
}

std::string time_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:g} ms", seconds * 1e3);
  return fmt::format("{:g} us", seconds * 1e6);
}

/// What the work is, as one of five colours.
std::string colour_of_kind(const std::string& kind) {
  const auto has = [&](const char* part) { return kind.find(part) != std::string::npos; };
  if (has("reduce") || has("gather") || has("to_all") || has("shift")) return hex(colour_of(kCollectiveKind));
  if (has("matmul")) return hex(colour_of(kProductKind));
  if (has("attention")) return hex(colour_of(kAttentionKind));
  if (has("adamw") || has("gradient")) return hex(colour_of(Kind::kOptimizer));
  return hex(colour_of(kElementwiseKind));
}

}  // namespace

std::string parity_plot(std::span<const ParityPoint> points) {
  constexpr double kSize = 420, kLeft = 70, kTop = 10;
  double low = 0, high = 0;
  for (const ParityPoint& p : points) {
    if (p.measured <= 0 || p.predicted <= 0) continue;
    const double least = std::min(p.measured, p.predicted), most = std::max(p.measured, p.predicted);
    low = low == 0 ? least : std::min(low, least);
    high = std::max(high, most);
  }
  if (low == 0) return "";
  const double from = std::floor(std::log10(low)), to = std::max(from + 1, std::ceil(std::log10(high)));
  const auto at = [&](double seconds) { return (std::log10(seconds) - from) / (to - from) * kSize; };
  const auto x = [&](double seconds) { return kLeft + at(seconds); };
  const auto y = [&](double seconds) { return kTop + kSize - at(seconds); };
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" role=\"img\" aria-label=\"predicted "
      "against measured\">\n",
      kLeft + kSize + 20, kTop + kSize + 50, kLeft + kSize + 20);
  const double first = std::pow(10, from), last = std::pow(10, to);
  svg += fmt::format("<clipPath id=\"frame\"><rect x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{2}\"/></clipPath>\n",
                     kLeft, kTop, kSize);
  svg += fmt::format(
      "<polygon clip-path=\"url(#frame)\" fill=\"#0072b2\" fill-opacity=\".15\" points=\"{:.1f},{:.1f} {:.1f},{:.1f} "
      "{:.1f},{:.1f} "
      "{:.1f},{:.1f}\"/>\n",
      x(first), y(first * (1 + kBand)), x(last), y(last * (1 + kBand)), x(last), y(last * (1 - kBand)), x(first),
      y(first * (1 - kBand)));
  svg += line(x(first), y(first), x(last), y(last), kAxis);
  for (double decade = from; decade <= to; ++decade) {
    const double tick = std::pow(10, decade);
    svg += line(x(tick), y(first), x(tick), y(last), kGrid) + line(x(first), y(tick), x(last), y(tick), kGrid);
    svg += text_at(x(tick), y(first) + 16, "middle", time_text(tick)) +
           text_at(kLeft - 6, y(tick) + 4, "end", time_text(tick));
  }
  for (const ParityPoint& p : points) {
    if (p.measured <= 0 || p.predicted <= 0) continue;
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"><title>{}: measured {:.4g} s, predicted "
        "{:.4g} s ({:+.1f} %)</title></circle>\n",
        x(p.measured), y(p.predicted), colour_of_kind(p.name), escaped(p.name), p.measured, p.predicted,
        kPercent * (p.predicted / p.measured - 1));
  }
  return svg + text_at(kLeft + kSize / 2, kTop + kSize + 38, "middle", "measured") +
         fmt::format(
             "<text transform=\"translate(14 {:.0f}) rotate(-90)\" text-anchor=\"middle\">predicted</text>\n</svg>\n",
             kTop + kSize / 2);
}

std::string error_bars(std::span<const ValidationGroup> groups, std::size_t most) {
  constexpr double kRow = 18, kLeft = 220, kWidth = 420, kLeastScale = 0.2;
  const std::size_t rows = std::min(most, groups.size());
  if (rows == 0) return "";
  double scale = kLeastScale;
  for (const ValidationGroup& g : groups.first(rows)) scale = std::max(scale, std::min(1.0, std::abs(g.bias)));
  const auto x = [&](double error) {
    return kLeft + kWidth / 2 + std::clamp(error, -scale, scale) / scale * kWidth / 2;
  };
  const double bottom = kRow * static_cast<double>(rows);
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" role=\"img\" aria-label=\"errors\">\n",
                  kLeft + kWidth + 80, bottom + 24, kLeft + kWidth + 80);
  for (const double error : {-kBand, 0.0, kBand}) {
    svg += line(x(error), 0, x(error), bottom, error == 0 ? kAxis : kGrid);
    svg += text_at(x(error), bottom + 16, "middle", fmt::format("{:+.0f} %", kPercent * error));
  }
  for (std::size_t i = 0; i < rows; ++i) {
    const ValidationGroup& g = groups[i];
    const double top = kRow * static_cast<double>(i), from = std::min(x(0), x(g.bias)), to = std::max(x(0), x(g.bias));
    svg += text_at(kLeft - 8, top + 13, "end", g.name.size() > 34 ? g.name.substr(0, 33) + "…" : g.name);
    svg +=
        fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", from, top + 3,
                    std::max(1.0, to - from), kRow - 6, hex(std::abs(g.bias) > kBand ? kSeries[5] : kSeries[0]));
    svg += text_at(kLeft + kWidth + 6, top + 13, "start", fmt::format("{:+.1f} %", kPercent * g.bias));
  }
  return svg + "</svg>\n";
}

std::string timeline_picture(const TimelinePair& pair) {
  constexpr double kLeft = 80, kWidth = 1000, kRow = 16, kGap = 30;
  constexpr std::size_t kMostRanks = 16;
  std::set<int> ranks;
  double end = 0;
  for (const auto* bars : {&pair.predicted, &pair.measured}) {
    for (const Bar& bar : *bars) {
      ranks.insert(bar.rank);
      end = std::max(end, bar.end_s);
    }
  }
  if (end <= 0) return "";
  while (ranks.size() > kMostRanks) ranks.erase(std::prev(ranks.end()));
  const double panel = kRow * static_cast<double>(ranks.size()) + kGap;
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" width=\"100%\" role=\"img\" aria-label=\"timelines\">\n",
                  kLeft + kWidth + 10, 2 * panel + 20);
  double top = 0;
  for (const auto& [name, bars] : {std::pair{"predicted", &pair.predicted}, std::pair{"measured", &pair.measured}}) {
    svg += text_at(kLeft, top + 14, "start", name);
    for (const int rank : ranks) {
      const double y = top + 20 + kRow * static_cast<double>(std::distance(ranks.begin(), ranks.find(rank)));
      svg += text_at(kLeft - 6, y + 11, "end", fmt::format("rank {}", rank));
      // Neighbours of one colour are one bar: kernels are far narrower than a pixel.
      double from = 0, to = 0;
      std::string colour;
      const auto draw = [&] {
        if (to > from) {
          svg += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
                             kLeft + from / end * kWidth, y, (to - from) / end * kWidth, kRow - 3, colour);
        }
      };
      for (const Bar& bar : *bars) {
        if (bar.rank != rank) continue;
        const bool joins = colour == colour_of_kind(bar.what) && bar.begin_s <= to + end / kWidth / 4;
        if (!joins) {
          draw();
          from = bar.begin_s;
          colour = colour_of_kind(bar.what);
        }
        to = bar.end_s;
      }
      draw();
    }
    top += panel;
  }
  svg += line(kLeft, top + 2, kLeft + kWidth, top + 2, kAxis) + text_at(kLeft, top + 16, "start", "0") +
         text_at(kLeft + kWidth, top + 16, "end", fmt::format("{:.4g} ms", end * 1e3));
  return svg + "</svg>\n";
}

}  // namespace trivium::report
