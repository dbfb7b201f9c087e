#include "report/validation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "calibration/measurements/quantities.h"
#include "report/html.h"
#include "report/validation_charts.h"

namespace trivium::report {
namespace {

using calibration::kPercent;
using calibration::ParityPoint;
using calibration::Validation;
using calibration::ValidationGroup;
using calibration::ValidationRow;

constexpr std::size_t kMostBars = 40;
constexpr std::size_t kMostRowsShown = 200;

std::string seconds_text(double value) { return fmt::format("{:.4g} s", value); }
std::string signed_percent(double share) { return fmt::format("{:+.1f} %", kPercent * share); }
std::string plain_percent(double share) { return fmt::format("{:.1f} %", kPercent * share); }

std::string amount(const std::string& by, double value) {
  return by == "memory" ? base::to_text(base::Bytes(value)) : seconds_text(value);
}

std::string bytes(const std::optional<double>& value) { return value ? base::to_text(base::Bytes(*value)) : "-"; }

void add_rows(const Validation& validation, Page& page) {
  std::vector<const ValidationRow*> rows;
  std::vector<std::string> without;
  for (const ValidationRow& row : validation.rows) {
    if (row.unsupported) {
      without.push_back(row.case_name + ": " + *row.unsupported);
    } else {
      rows.push_back(&row);
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto* a, const auto* b) { return std::abs(a->error) > std::abs(b->error); });
  const std::size_t shown = std::min(kMostRowsShown, rows.size());
  page.heading(shown < rows.size() ? fmt::format("Cases, the worst {} of {}", shown, rows.size())
                                   : "Cases, the worst first");
  std::vector<std::vector<std::string>> table;
  for (std::size_t i = 0; i < shown; ++i) {
    const ValidationRow& row = *rows[i];
    table.push_back({row.case_name, row.hardware, seconds_text(row.measured_iteration_s),
                     seconds_text(row.predicted_iteration_s), signed_percent(row.error), bytes(row.measured_peak_bytes),
                     bytes(row.predicted_peak_bytes)});
  }
  page.table({"case", "hardware", "measured", "predicted", "error", "memory", "predicted"}, table);
  if (without.empty()) return;
  page.heading("Not replayed");
  page.list(without);
}

void add_groups(const Validation& validation, Page& page) {
  if (validation.groups.empty()) return;
  page.heading("Groups");
  std::vector<std::vector<std::string>> table;
  for (const ValidationGroup& g : validation.groups) {
    table.push_back({g.by + " " + g.name, std::to_string(g.cases), amount(g.by, g.measured), amount(g.by, g.predicted),
                     signed_percent(g.bias), plain_percent(g.mape), plain_percent(g.max)});
  }
  page.table({"by", "cases", "measured", "predicted", "mean error", "mean |error|", "max |error|"}, table);
}

std::vector<ParityPoint> points_of(const Validation& validation) {
  if (!validation.points.empty()) return validation.points;
  std::vector<ParityPoint> points;
  for (const ValidationRow& row : validation.rows) {
    if (!row.unsupported && row.ran)
      points.push_back({row.case_name, row.measured_iteration_s, row.predicted_iteration_s});
  }
  return points;
}

/// Groups by op kind, or where there are none by source.
std::vector<ValidationGroup> bars_of(const Validation& validation) {
  for (const char* by : {"op", "source"}) {
    std::vector<ValidationGroup> bars;
    for (const ValidationGroup& g : validation.groups) {
      if (g.by == by) bars.push_back(g);
    }
    if (!bars.empty()) return bars;
  }
  return {};
}

}  // namespace

std::string validation_page(const Validation& validation, std::string_view title) {
  Page page(title);
  if (const std::string plot = parity_plot(points_of(validation)); !plot.empty()) {
    page.heading("Predicted against measured");
    page.figure("The band is 10 % to either side.", plot);
  }
  if (const auto bars = bars_of(validation); !bars.empty()) {
    page.heading(bars.front().by == "op" ? "Error by op kind" : "Error by source");
    page.figure("Predicted over measured, less one; of a run the largest difference in seconds first.",
                error_bars(bars, kMostBars));
  }
  if (validation.timelines) {
    page.heading(fmt::format("Step {} twice", validation.timelines->step));
    page.figure(
        "Blue: products; green: attention; light blue: other kernels; yellow: optimizer; orange: collectives; empty: "
        "waiting.",
        timeline_picture(*validation.timelines));
  }
  add_rows(validation, page);
  add_groups(validation, page);
  return page.text();
}

}  // namespace trivium::report
