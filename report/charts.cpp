#include "report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "report/html.h"
#include "report/palette.h"

namespace trivium::report {
namespace {

constexpr double kWidth = 1000;   // of all pictures, in their own units
constexpr double kLine = 22;      // a row
constexpr double kBar = 14;       // of it, what is drawn
constexpr double kLabels = 180;   // for the names at the left
constexpr double kFigures = 110;  // for the figures at the right
constexpr double kLegendLine = 20;
constexpr double kPerLetter = 7;  // a letter of 12 px, about

/// An SVG element of growing height.
class Drawing {
 public:
  double height = 0;

  void rect(double x, double y, double width, double high, std::uint32_t colour, const std::string& tip = {}) {
    fmt::format_to(std::back_inserter(body_),
                   "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"", x, y, width, high,
                   hex(colour));
    body_ += tip.empty() ? std::string("/>") : "><title>" + escaped(tip) + "</title></rect>";
  }
  void outline(double x, double y, double width, double high, std::uint32_t colour) {
    fmt::format_to(std::back_inserter(body_),
                   "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" stroke=\"{}\" "
                   "stroke-width=\"2\"/>",
                   x, y, width, high, hex(colour));
  }
  void line(double x1, double y1, double x2, double y2, bool dashed) {
    fmt::format_to(std::back_inserter(body_),
                   "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"currentColor\"{}/>", x1, y1,
                   x2, y2, dashed ? " stroke-dasharray=\"4 3\" stroke-width=\"1.5\"" : "");
  }
  /// `anchor`: "start", "middle", "end".
  void text(double x, double y, const std::string& words, const char* anchor = "start") {
    fmt::format_to(std::back_inserter(body_), "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", x, y,
                   anchor, escaped(words));
  }
  std::string svg(const std::string& what) const {
    return fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" role=\"img\" aria-label=\"{}\">{}</svg>",
                       kWidth, height, kWidth, escaped(what), body_);
  }

 private:
  std::string body_;
};

void legend(Drawing& drawing, const std::vector<ChartPart>& parts, const std::vector<bool>& used) {
  double x = kLabels;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (!used[p]) continue;
    const double wide = 32 + kPerLetter * static_cast<double>(parts[p].name.size());
    if (x + wide > kWidth && x > kLabels) {
      x = kLabels;
      drawing.height += kLegendLine;
    }
    drawing.rect(x, drawing.height + 4, 12, 12, parts[p].colour);
    drawing.text(x + 17, drawing.height + 14, parts[p].name);
    x += wide;
  }
  drawing.height += kLegendLine + 6;
}

/// Names that are too long for their place lose their end.
std::string fitting(const std::string& label, double room) {
  const auto most = static_cast<std::size_t>(std::max(4.0, room / kPerLetter));
  if (label.size() <= most) return label;
  std::size_t end = most - 1;
  while (end > 0 && (static_cast<unsigned char>(label[end]) & 0xC0U) == 0x80U) --end;  // never inside a letter
  return label.substr(0, end) + "…";
}

}  // namespace

std::string stacked_bars(const std::vector<ChartPart>& parts, const std::vector<StackedBar>& bars,
                         const ValueText& text) {
  if (bars.empty()) return "";
  std::vector<bool> used(parts.size(), false);
  double most = 0;
  for (const StackedBar& bar : bars) {
    for (std::size_t p = 0; p < parts.size(); ++p) used[p] = used[p] || bar.values[p] > 0;
    most = std::max({most, bar.limit, std::accumulate(bar.values.begin(), bar.values.end(), 0.0)});
  }
  if (most <= 0) most = 1;
  Drawing drawing;
  legend(drawing, parts, used);
  const double scale = (kWidth - kLabels - kFigures) / most;
  for (const StackedBar& bar : bars) {
    const double y = drawing.height, top = y + (kLine - kBar) / 2;
    drawing.text(kLabels - 8, y + 15, fitting(bar.label, kLabels - 8), "end");
    double sum = 0;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (bar.values[p] <= 0) continue;
      drawing.rect(kLabels + sum * scale, top, bar.values[p] * scale, kBar, parts[p].colour,
                   parts[p].name + ": " + text(bar.values[p]));
      sum += bar.values[p];
    }
    if (bar.limit > 0 && sum > bar.limit) drawing.outline(kLabels, top, sum * scale, kBar, kAlarm);
    if (bar.limit > 0) drawing.line(kLabels + bar.limit * scale, y, kLabels + bar.limit * scale, y + kLine, true);
    drawing.text(kLabels + std::max(sum, bar.limit) * scale + 6, y + 15, text(sum));
    drawing.height += kLine;
  }
  return drawing.svg("stacked bars");
}

std::string change_bars(const std::vector<ChangeBar>& changes) {
  if (changes.empty()) return "";
  constexpr double kNames = 420;
  double most = 0.001;
  for (const ChangeBar& change : changes) {
    if (change.note.empty()) most = std::max(most, std::abs(change.share));
  }
  Drawing drawing;
  const double middle = (kNames + kWidth) / 2, half = (kWidth - kNames) / 2 - kFigures * 0.7;
  for (const ChangeBar& change : changes) {
    const double y = drawing.height;
    drawing.text(0, y + 15, fitting(change.label, kNames - 10));
    if (!change.note.empty()) {
      drawing.text(kNames, y + 15, fitting(change.note, kWidth - kNames));
    } else {
      const double wide = std::abs(change.share) / most * half;
      const bool gains = change.share < 0;
      drawing.rect(gains ? middle - wide : middle, y + (kLine - kBar) / 2, wide, kBar, gains ? kSeries[2] : kSeries[5]);
      drawing.text(gains ? middle - wide - 5 : middle + wide + 5, y + 15,
                   fmt::format("{}{:.1f} %", gains ? "−" : "+", 100 * std::abs(change.share)), gains ? "end" : "start");
    }
    drawing.height += kLine;
  }
  drawing.line(middle, 0, middle, drawing.height, false);
  return drawing.svg("changes of the iteration");
}

std::string precise_seconds(double seconds, int digits) {
  if (seconds >= 1) return fmt::format("{:.{}g} s", seconds, digits);
  if (seconds >= 1e-3) return fmt::format("{:.{}g} ms", seconds * 1e3, digits);
  return fmt::format("{:.{}g} us", seconds * 1e6, digits);
}

std::string band_chart(const Band& band, const std::string& marked_as, const ValueText& text) {
  const double low = std::min(band.low, band.marked), high = std::max(band.high, band.marked);
  const double air = std::max((high - low) * 0.15, high * 1e-6);
  const auto x = [&](double value) {
    return kLabels + (value - low + air) / (high - low + 2 * air) * (kWidth - kLabels - kFigures);
  };
  Drawing drawing;
  drawing.height = 66;
  drawing.rect(x(band.low), 24, std::max(1.0, x(band.high) - x(band.low)), kBar, kSeries[4],
               "5 % to 95 % of the simulations");
  drawing.rect(x(band.middle) - 1.5, 20, 3, kBar + 8, kSeries[0], "median");
  drawing.line(x(band.marked), 16, x(band.marked), 46, true);
  drawing.text(x(band.low) - 6, 35, text(band.low), "end");
  drawing.text(x(band.high) + 6, 35, text(band.high));
  drawing.text(x(band.middle), 13, "median " + text(band.middle), "middle");
  drawing.text(x(band.marked), 60, marked_as + " " + text(band.marked), "middle");
  return drawing.svg("band of iteration times");
}

std::string strips(const std::vector<ChartPart>& parts, const std::vector<StripRow>& rows, double length,
                   const ValueText& text) {
  if (rows.empty()) return "";
  std::vector<bool> used(parts.size(), false);
  for (const StripRow& row : rows) {
    for (const int part : row.columns) {
      if (part >= 0) used[static_cast<std::size_t>(part)] = true;
    }
  }
  Drawing drawing;
  legend(drawing, parts, used);
  constexpr double kRoom = kWidth - kLabels;
  for (const StripRow& row : rows) {
    drawing.text(kLabels - 8, drawing.height + 14, fitting(row.label, kLabels - 8), "end");
    const double per_column = kRoom / static_cast<double>(row.columns.size());
    for (std::size_t from = 0; from < row.columns.size();) {
      std::size_t to = from + 1;
      while (to < row.columns.size() && row.columns[to] == row.columns[from]) ++to;
      if (row.columns[from] >= 0) {
        drawing.rect(kLabels + static_cast<double>(from) * per_column, drawing.height + 2,
                     static_cast<double>(to - from) * per_column, kLine - 4,
                     parts[static_cast<std::size_t>(row.columns[from])].colour);
      }
      from = to;
    }
    drawing.height += kLine - 2;
  }
  drawing.line(kLabels, drawing.height + 2, kWidth, drawing.height + 2, false);
  drawing.height += 18;
  drawing.text(kLabels, drawing.height, "0");
  drawing.text(kWidth, drawing.height, text(length), "end");
  drawing.height += 6;
  return drawing.svg("timeline");
}

}  // namespace trivium::report
