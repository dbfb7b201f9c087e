// A Validation as JSON and as text: one result, two renderers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/units.h"
#include "calibration/measurements/quantities.h"
#include "calibration/measurements/statistics.h"
#include "calibration/validate/groups.h"
#include "calibration/validate/tables.h"
#include "calibration/validate/validate.h"

namespace trivium::calibration {
namespace {

constexpr const char* kSchema = "trivium.validation/1";

template <class Value>
nlohmann::json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

/// Whether a row has a predicted time to compare.
bool timed(const ValidationRow& row) { return row.ran && !row.unsupported; }

std::string correlation(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}", *value) : std::string("-");  // not defined
}

std::string size(const std::optional<double>& bytes) {
  return bytes ? base::to_text(base::Bytes(*bytes)) : std::string("-");
}

/// Seconds of a step, or bytes.
std::string amount(const std::string& by, double value) {
  constexpr double kMilliseconds = 1e3;
  if (by == "memory") return base::to_text(base::Bytes(value));
  return fmt::format("{:.3f} ms", kMilliseconds * value);
}

void add_groups(std::string& text, const std::vector<ValidationGroup>& groups) {
  if (groups.empty()) return;
  const bool of_run = groups.front().by == "step" || groups.front().by == "op";
  text += fmt::format("{:<8} {:<{}} {:>5} {:>9} {:>8} {:>8} {:>8} {:>6}", "by", "name", of_run ? 24 : 44, "cases",
                      "mean|e| %", "bias %", "median %", "max %", "rank r");
  text += of_run ? fmt::format(" {:>11} {:>11}\n", "measured", "predicted") : fmt::format(" {:>12}\n", "in 90 % int.");
  for (const ValidationGroup& g : groups) {
    text += fmt::format("{:<8} {:<{}} {:>5} {:>9.1f} {:>+8.1f} {:>8.1f} {:>8.1f} {:>6}", g.by, g.name, of_run ? 24 : 44,
                        g.cases, kPercent * g.mape, kPercent * g.bias, kPercent * g.median, kPercent * g.max,
                        correlation(g.spearman));
    text += of_run ? fmt::format(" {:>11} {:>11}\n", amount(g.by, g.measured), amount(g.by, g.predicted))
                   : fmt::format(" {:>10.1f} %\n", g.cases > 0 ? kPercent * g.within / g.cases : 0);
  }
}

/// Of tables with runs that did not run: how many rows were told rightly to fit or not.
void add_feasibility(std::string& text, const Validation& validation) {
  if (std::ranges::all_of(validation.rows, &ValidationRow::ran)) return;
  for (const ValidationGroup& g : validation.groups) {
    if (g.by != "source" || g.told == 0) continue;
    text += fmt::format("fits or not: {} of {} rows told rightly ({:.1f} %), {}\n", g.told_rightly, g.told,
                        kPercent * g.told_rightly / g.told, g.name);
  }
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(std::max<std::size_t>(1, values.size()));
}

/// The sweeps whose order can be judged, as one line.
void add_order(std::string& text, const std::vector<Sweep>& sweeps, std::string_view what,
               const std::function<const SweepOrder*(const Sweep&)>& order_of) {
  std::vector<double> regrets, of_fitting, correlations;
  for (const Sweep& sweep : sweeps) {
    const SweepOrder* order = order_of(sweep);
    if (order == nullptr || !sweep.tells(*order)) continue;
    regrets.push_back(order->regret);
    of_fitting.push_back(order->regret_of_fitting);
    if (order->spearman) correlations.push_back(*order->spearman);
  }
  if (regrets.empty()) return;
  text += fmt::format(
      "{}: {} sweeps, regret median {:.1f} %, mean {:.1f} %; choosing among plans that fit with 95 %, "
      "median {:.1f} %, mean {:.1f} %; rank r mean {:.2f}\n",
      what, regrets.size(), kPercent * median(regrets), kPercent * mean(regrets), kPercent * median(of_fitting),
      kPercent * mean(of_fitting), mean(correlations));
}

void add_orders(std::string& text, const std::vector<Sweep>& sweeps) {
  std::string lines;
  add_order(lines, sweeps, "all plans", [](const Sweep& sweep) { return &sweep; });
  add_order(lines, sweeps, "plans measured at 10 % MFU or more",
            [](const Sweep& sweep) { return sweep.well_used ? &*sweep.well_used : nullptr; });
  if (lines.empty()) return;
  text += "order (sweeps of 5 plans or more, 2 samples a device or more, 5 % apart or more)\n" + lines;
}

void add_sweeps(std::string& text, const std::vector<Sweep>& sweeps) {
  if (sweeps.empty()) return;
  text += fmt::format("\n{:>8} {:>9} {:>8} {:>6} {:>5}  sweep (* regret above 1 % and the spread of repeats)\n",
                      "regret %", "repeats %", "spread %", "rank r", "plans");
  for (const Sweep& sweep : sweeps) {
    text += fmt::format("{:>7.1f}{} {:>9.1f} {:>8.1f} {:>6} {:>5}  {}\n", kPercent * sweep.regret,
                        sweep.regret > sweep.tolerated() ? '*' : ' ', kPercent * sweep.repeat_spread,
                        kPercent * sweep.spread, correlation(sweep.spearman), sweep.plans, sweep.name);
  }
  add_orders(text, sweeps);
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

/// Of all rows that count: how many, how far off, how many within their interval.
std::string table_headline(const Validation& validation) {
  std::vector<Pair> pairs;
  int within = 0, judged = 0, unsupported = 0;
  for (const ValidationRow& row : validation.rows) {
    unsupported += row.unsupported ? 1 : 0;
    if (!timed(row) || row.tier == "C") continue;
    pairs.push_back({row.measured_iteration_s, row.predicted_iteration_s});
    if (!row.interval_s) continue;
    ++judged;
    within += row.interval_s->low <= row.measured_iteration_s && row.measured_iteration_s <= row.interval_s->high;
  }
  if (pairs.size() < 2) return {};
  const ValidationGroup all = group_of("", "", pairs);
  std::string line = fmt::format("{} runs: mean error {:.1f} %, bias {:+.1f} %", pairs.size(), kPercent * all.mape,
                                 kPercent * all.bias);
  if (judged > 0) line += fmt::format("; {:.0f} % measured within their 90 % interval", kPercent * within / judged);
  if (unsupported > 0) line += fmt::format("; {} more rows not replayed", unsupported);
  return line + "\n\n";
}

nlohmann::json order_json(const SweepOrder& order) {
  return {{"plans", order.plans},
          {"regret", order.regret},
          {"regret_of_fitting", order.regret_of_fitting},
          {"spread", order.spread},
          {"spearman", or_null(order.spearman)}};
}

nlohmann::json sweep_json(const Sweep& sweep) {
  nlohmann::json json = order_json(sweep);
  json["name"] = sweep.name;
  json["repeat_spread"] = sweep.repeat_spread;
  json["samples_per_device"] = sweep.samples_per_device;
  json["from_10_percent_mfu"] = sweep.well_used ? order_json(*sweep.well_used) : nlohmann::json(nullptr);
  return json;
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
         {"outcome", r.ran ? "ran" : "did_not_run"},
         {"measured_iteration_s", r.ran ? nlohmann::json(r.measured_iteration_s) : nlohmann::json()},
         {"predicted_iteration_s", timed(r) ? nlohmann::json(r.predicted_iteration_s) : nlohmann::json()},
         {"error", timed(r) ? nlohmann::json(r.error) : nlohmann::json()},
         {"measured_peak_bytes", or_null(r.measured_peak_bytes)},
         {"predicted_peak_bytes", or_null(r.predicted_peak_bytes)},
         {"unsupported", or_null(r.unsupported)}});
    if (r.predicted_fits) json["rows"].back()["predicted_fits"] = *r.predicted_fits;
    if (r.interval_s) json["rows"].back()["interval_90_s"] = {r.interval_s->low, r.interval_s->high};
    if (r.peak_interval_bytes) {
      json["rows"].back()["peak_interval_90_bytes"] = {std::llround(r.peak_interval_bytes->low),
                                                       std::llround(r.peak_interval_bytes->high)};
    }
    if (r.fit_probability) json["rows"].back()["fit_probability"] = *r.fit_probability;
    if (!r.software.empty()) json["rows"].back()["software"] = r.software;
    if (!r.precision.empty()) json["rows"].back()["precision"] = r.precision;
  }
  for (const ValidationGroup& g : validation.groups) {
    json["groups"].push_back({{"by", g.by},
                              {"name", g.name},
                              {"cases", g.cases},
                              {"mape", g.mape},
                              {"bias", g.bias},
                              {"median", g.median},
                              {"max", g.max},
                              {"spearman", or_null(g.spearman)},
                              {"measured", g.measured},
                              {"predicted", g.predicted}});
    if (g.by == "source" || g.by == "hardware") json["groups"].back()["within_90"] = g.within;
    if (g.told > 0) json["groups"].back()["fits"] = {{"rows", g.told}, {"right", g.told_rightly}};
  }
  for (const Sweep& s : validation.sweeps) json["sweeps"].push_back(sweep_json(s));
  return json;
}

std::string to_table(const Validation& validation, Detail detail) {
  if (is_of_one_run(validation) && detail == Detail::kMain) return run_table(validation);
  std::vector<const ValidationRow*> replayed, unsupported;
  for (const ValidationRow& row : validation.rows) {
    if (row.unsupported) unsupported.push_back(&row);
    if (timed(row)) replayed.push_back(&row);
  }
  std::string text = table_headline(validation);
  add_groups(text, validation.groups);
  add_feasibility(text, validation);
  add_sweeps(text, validation.sweeps);
  add_rows(text, std::move(replayed));
  add_unsupported(text, unsupported);
  return text;
}

}  // namespace trivium::calibration
