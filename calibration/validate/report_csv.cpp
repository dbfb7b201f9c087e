// A Validation as one table of comma-separated values.
#include <fmt/format.h>

#include <cmath>

#include "calibration/validate/validate.h"

namespace trivium::calibration {
namespace {

/// As RFC 4180 has it: quoted where a comma, a quote or a line end is inside.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string optional(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; }

}  // namespace

std::string to_csv(const Validation& validation) {
  std::string text =
      "what,name,source,hardware,tier,cases,measured,predicted,error,mean_abs_error,max_abs_error,measured_peak_bytes,"
      "predicted_peak_bytes,unsupported\n";
  for (const ValidationRow& r : validation.rows) {
    const bool known = r.ran && !r.unsupported;
    text += fmt::format("row,{},{},{},{},1,{},{},{},{},{},{},{},{}\n", field(r.case_name), field(r.source),
                        field(r.hardware), field(r.tier), r.measured_iteration_s,
                        known ? fmt::format("{}", r.predicted_iteration_s) : "",
                        known ? fmt::format("{}", r.error) : "", known ? fmt::format("{}", std::abs(r.error)) : "",
                        known ? fmt::format("{}", std::abs(r.error)) : "", optional(r.measured_peak_bytes),
                        optional(r.predicted_peak_bytes), field(r.unsupported.value_or("")));
  }
  for (const ValidationGroup& g : validation.groups) {
    text += fmt::format("{},{},,,,{},{},{},{},{},{},,,\n", field(g.by), field(g.name), g.cases, g.measured, g.predicted,
                        g.bias, g.mape, g.max);
  }
  return text;
}

}  // namespace trivium::calibration
