// A Validation as JSON and as text: one result, two renderers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "calibration/validate.h"
#include "edge/units.h"

namespace trivium::calibration {
namespace {

constexpr const char* kSchema = "trivium.validation/1";
constexpr double kPercent = 100;

template <class Value>
nlohmann::json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

std::string size(const std::optional<double>& bytes) {
  return bytes ? edge::to_text(edge::Bytes(*bytes)) : std::string("-");
}

void add_groups(std::string& text, const std::vector<ValidationGroup>& groups) {
  if (groups.empty()) return;
  text += fmt::format("{:<8} {:<44} {:>5} {:>9} {:>8} {:>8} {:>8} {:>6}\n", "by", "name", "cases", "mean|e| %",
                      "bias %", "median %", "max %", "rank r");
  for (const ValidationGroup& g : groups) {
    text += fmt::format("{:<8} {:<44} {:>5} {:>9.1f} {:>+8.1f} {:>8.1f} {:>8.1f} {:>6.2f}\n", g.by, g.name, g.cases,
                        kPercent * g.mape, kPercent * g.bias, kPercent * g.median, kPercent * g.max, g.spearman);
  }
}

void add_sweeps(std::string& text, const std::vector<Sweep>& sweeps) {
  if (sweeps.empty()) return;
  text += fmt::format("\n{:>8} {:>5}  sweep\n", "regret %", "plans");
  for (const Sweep& sweep : sweeps) {
    text += fmt::format("{:>8.1f} {:>5}  {}\n", kPercent * sweep.regret, sweep.plans, sweep.name);
  }
}

void add_rows(std::string& text, std::vector<const ValidationRow*> rows) {
  if (rows.empty()) return;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto* a, const auto* b) { return std::abs(a->error) > std::abs(b->error); });
  text += fmt::format("\n{:>8} {:>12} {:>12} {:>9} {:>9} {:>4}  case, hardware\n", "error %", "measured s",
                      "predicted s", "memory", "predicted", "tier");
  for (const ValidationRow* row : rows) {
    text += fmt::format("{:>+8.1f} {:>12.4g} {:>12.4g} {:>9} {:>9} {:>4}  {}, {}\n", kPercent * row->error,
                        row->measured_iteration_s, row->predicted_iteration_s, size(row->measured_peak_bytes),
                        size(row->predicted_peak_bytes), row->tier, row->case_name, row->hardware);
  }
}

void add_unsupported(std::string& text, const std::vector<const ValidationRow*>& rows) {
  if (rows.empty()) return;
  text += fmt::format("\nnot replayed: {}\n", rows.size());
  for (const ValidationRow* row : rows) text += fmt::format("  {}: {}\n", row->case_name, *row->unsupported);
}

}  // namespace

nlohmann::json to_json(const Validation& validation) {
  nlohmann::json json{{"schema", kSchema},
                      {"rows", nlohmann::json::array()},
                      {"groups", nlohmann::json::array()},
                      {"sweeps", nlohmann::json::array()}};
  for (const ValidationRow& r : validation.rows) {
    json["rows"].push_back(
        {{"case", r.case_name},
         {"source", r.source},
         {"hardware", r.hardware},
         {"tier", r.tier},
         {"measured_iteration_s", r.measured_iteration_s},
         {"predicted_iteration_s", r.unsupported ? nlohmann::json() : nlohmann::json(r.predicted_iteration_s)},
         {"error", r.unsupported ? nlohmann::json() : nlohmann::json(r.error)},
         {"measured_peak_bytes", or_null(r.measured_peak_bytes)},
         {"predicted_peak_bytes", or_null(r.predicted_peak_bytes)},
         {"unsupported", or_null(r.unsupported)}});
  }
  for (const ValidationGroup& g : validation.groups) {
    json["groups"].push_back({{"by", g.by},
                              {"name", g.name},
                              {"cases", g.cases},
                              {"mape", g.mape},
                              {"bias", g.bias},
                              {"median", g.median},
                              {"max", g.max},
                              {"spearman", g.spearman}});
  }
  for (const Sweep& s : validation.sweeps) {
    json["sweeps"].push_back({{"name", s.name}, {"plans", s.plans}, {"regret", s.regret}});
  }
  return json;
}

std::string to_table(const Validation& validation) {
  std::vector<const ValidationRow*> replayed, unsupported;
  for (const ValidationRow& row : validation.rows) (row.unsupported ? unsupported : replayed).push_back(&row);
  std::string text;
  add_groups(text, validation.groups);
  add_sweeps(text, validation.sweeps);
  add_rows(text, std::move(replayed));
  add_unsupported(text, unsupported);
  return text;
}

}  // namespace trivium::calibration
