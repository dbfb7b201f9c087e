// A Validation as one page of HTML.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibration/pictures.h"
#include "calibration/validate.h"
#include "edge/units.h"

namespace trivium::calibration {
namespace {

constexpr double kPercent = 100;
constexpr std::size_t kMostBars = 40;
constexpr std::size_t kMostRows = 200;

constexpr const char* kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1120px;margin:2em auto;padding:0 1em;color:#222;background:#fff}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:2px 10px;text-align:right;"
    "border-bottom:1px solid #ddd}td:first-child,th:first-child,td:nth-child(2),th:nth-child(2){text-align:left}"
    "svg{font:12px system-ui,sans-serif;fill:#333;max-width:100%;height:auto}.grid{stroke:#ccc}.diagonal{stroke:#666}"
    ".band{fill:#0072b2;opacity:.12}";

std::string cell(const std::string& text) { return "<td>" + escaped(text) + "</td>"; }

std::string amount(const std::string& by, double value) {
  return by == "memory" ? edge::to_text(edge::Bytes(value)) : fmt::format("{:.4g} s", value);
}

std::string bytes(const std::optional<double>& value) { return value ? edge::to_text(edge::Bytes(*value)) : "–"; }

void add_rows(const Validation& validation, std::string& page) {
  std::vector<const ValidationRow*> rows;
  for (const ValidationRow& row : validation.rows) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
    if (a->unsupported.has_value() != b->unsupported.has_value()) return !a->unsupported.has_value();
    return std::abs(a->error) > std::abs(b->error);
  });
  const std::size_t shown = std::min(kMostRows, rows.size());
  page += fmt::format(
      "<h2>Cases, the worst first{}</h2>\n<table><tr><th>case</th><th>hardware</th><th>measured</th>"
      "<th>predicted</th><th>error</th><th>memory</th><th>predicted</th></tr>\n",
      shown < rows.size() ? fmt::format(" ({} of {})", shown, rows.size()) : "");
  for (std::size_t i = 0; i < shown; ++i) {
    const ValidationRow& row = *rows[i];
    page += "<tr>" + cell(row.case_name) + cell(row.hardware) + cell(amount("", row.measured_iteration_s));
    page += row.unsupported
                ? fmt::format("<td colspan=\"4\">{}</td>", escaped(*row.unsupported))
                : cell(amount("", row.predicted_iteration_s)) + cell(fmt::format("{:+.1f} %", kPercent * row.error)) +
                      cell(bytes(row.measured_peak_bytes)) + cell(bytes(row.predicted_peak_bytes));
    page += "</tr>\n";
  }
  page += "</table>\n";
}

void add_groups(const Validation& validation, std::string& page) {
  if (validation.groups.empty()) return;
  page +=
      "<h2>Groups</h2>\n<table><tr><th>by</th><th>name</th><th>cases</th><th>measured</th><th>predicted</th>"
      "<th>mean error</th><th>mean |error|</th><th>max |error|</th></tr>\n";
  for (const ValidationGroup& g : validation.groups) {
    page += "<tr>" + cell(g.by) + cell(g.name) + cell(std::to_string(g.cases)) + cell(amount(g.by, g.measured)) +
            cell(amount(g.by, g.predicted)) + cell(fmt::format("{:+.1f} %", kPercent * g.bias)) +
            cell(fmt::format("{:.1f} %", kPercent * g.mape)) + cell(fmt::format("{:.1f} %", kPercent * g.max)) +
            "</tr>\n";
  }
  page += "</table>\n";
}

std::vector<ParityPoint> points_of(const Validation& validation) {
  if (!validation.points.empty()) return validation.points;
  std::vector<ParityPoint> points;
  for (const ValidationRow& row : validation.rows) {
    if (!row.unsupported) points.push_back({row.case_name, row.measured_iteration_s, row.predicted_iteration_s});
  }
  return points;
}

std::vector<ValidationGroup> bars_of(const Validation& validation) {
  std::vector<ValidationGroup> bars;
  for (const char* by : {"op", "source"}) {
    for (const ValidationGroup& g : validation.groups) {
      if (g.by == by) bars.push_back(g);
    }
    if (!bars.empty()) break;
  }
  return bars;
}

}  // namespace

std::string to_html(const Validation& validation, const std::string& title) {
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n"
      "<style>{1}</style></head><body>\n<h1>{0}</h1>\n",
      escaped(title), kStyle);
  page += "<h2>Predicted against measured</h2>\n<p>The band is 10 % to either side.</p>\n" +
          parity_plot(points_of(validation));
  if (const auto bars = bars_of(validation); !bars.empty()) {
    page += fmt::format("<h2>Error by {}</h2>\n{}",
                        bars.front().by == "op" ? "op kind, the largest difference first" : "source",
                        error_bars(bars, kMostBars));
  }
  if (validation.timelines) {
    page += fmt::format(
        "<h2>Step {}</h2>\n<p>Blue: products; pink: attention; green: other kernels; orange: optimizer; red: "
        "collectives; white: waiting.</p>\n{}",
        validation.timelines->step, timeline_picture(*validation.timelines));
  }
  add_rows(validation, page);
  add_groups(validation, page);
  return page + "</body></html>\n";
}

}  // namespace trivium::calibration
