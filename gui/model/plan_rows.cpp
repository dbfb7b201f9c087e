#include "gui/model/plan_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/readable.h"
#include "gui/model/axis.h"
#include "gui/model/display_name.h"
#include "gui/model/plan_controls.h"
#include "gui/model/stage_lists.h"
#include "program/plan/fields.h"
#include "simulator/certainty/probability_text.h"
#include "simulator/iteration/mfu_text.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::gui {
namespace {

constexpr double kSecondsPerHour = 3600;
constexpr double kWorthSaying = 0.002;  // of the faster iteration

/// A field of a plan as plan controls and lists show it.
std::string value_of(const program::Plan& plan, const program::PlanField& field) {
  const auto is_it = [&](const StageList& list) { return std::string(list.field) == field.name; };
  if (std::any_of(stage_lists().begin(), stage_lists().end(), is_it)) {
    const std::string text = list_text(plan, field.name);
    return text.empty() ? "all alike" : text;
  }
  const nlohmann::json value = field.json(plan);
  return shown(field.name, value.is_string() ? value.get<std::string>() : value.dump());
}

void judge(DifferenceRow& row) {
  row.differs = std::any_of(row.values.begin(), row.values.end(), [&](const auto& v) { return v != row.values[0]; });
}

}  // namespace

double dollars_per_iteration(const program::Plan& plan, const hardware::Cluster& cluster, double iteration_s) {
  double per_hour = 0;
  int left = plan.ranks();
  const simulator::PlacedCluster placed(plan, cluster);
  for (const hardware::NodeGroup& group : placed.get().groups) {
    const int devices = std::min(left, group.count * group.node.devices);
    if (devices == 0) continue;
    if (group.node.price.value() == 0) return 0;
    per_hour += (devices + group.node.devices - 1) / group.node.devices * group.node.price.value();
    left -= devices;
  }
  return per_hour * iteration_s / kSecondsPerHour;
}

PlanRow row_of(const program::Plan& plan, const simulator::Simulation& figures, const hardware::Cluster& cluster) {
  PlanRow row;
  row.plan = plan;
  row.summary = display_name(program::summary(plan));
  row.iteration_s = figures.iteration_s;
  row.tokens_per_s = figures.tokens_per_s;
  row.mfu = figures.mfu;
  row.hfu = figures.hfu;
  row.peak_memory_bytes = static_cast<double>(figures.peak_memory_bytes);
  row.certainty = figures.certainty;
  row.dollars_per_iteration = dollars_per_iteration(plan, cluster, figures.iteration_s);
  row.breakdown_s = figures.breakdown_s;
  return row;
}

std::string dollars_text(double dollars) {
  constexpr double kSmall = 0.1;
  return dollars >= kSmall || dollars == 0 ? fmt::format("${:.2f}", dollars) : fmt::format("${:.2g}", dollars);
}

std::vector<std::size_t> pareto_front(const std::vector<std::pair<double, double>>& points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return points[a] < points[b]; });
  std::vector<std::size_t> front;
  for (const std::size_t i : order) {
    if (front.empty() || points[i].second < points[front.back()].second) front.push_back(i);
  }
  return front;
}

std::vector<DifferenceRow> differences(const std::vector<PlanRow>& plans) {
  std::vector<DifferenceRow> rows;
  if (plans.empty()) return rows;
  const auto figure = [&](const char* name, auto&& text) {
    DifferenceRow row{name, {}, false};
    for (const PlanRow& plan : plans) row.values.push_back(text(plan));
    judge(row);
    rows.push_back(std::move(row));
  };
  figure("iteration", [](const PlanRow& p) { return seconds_words(p.iteration_s); });
  figure("90 % of measurements",
         [](const PlanRow& p) { return as_figures(simulator::interval_text(p.certainty.iteration_s, p.iteration_s)); });
  figure("tokens/s", [](const PlanRow& p) { return base::integer(p.tokens_per_s); });
  figure("MFU", [](const PlanRow& p) { return simulator::mfu_text(p.mfu, p.plan); });
  figure("HFU", [](const PlanRow& p) { return simulator::mfu_text(p.hfu, p.plan); });
  figure("peak memory", [](const PlanRow& p) { return base::size(static_cast<std::int64_t>(p.peak_memory_bytes)); });
  figure("fits with probability",
         [](const PlanRow& p) { return simulator::probability_text(p.certainty.fit_probability); });
  const auto known = [](const PlanRow& plan) { return !plan.job.empty(); };
  if (std::any_of(plans.begin(), plans.end(), known)) figure("job", [](const PlanRow& p) { return p.job; });
  // Of all fields, as files leave those out that say nothing.
  std::map<std::string, DifferenceRow> fields;
  for (const program::PlanField& field : program::plan_field_table()) {
    DifferenceRow& row = fields[field.name] = {field.name, {}, false};
    for (const PlanRow& plan : plans) row.values.push_back(value_of(plan.plan, field));
    judge(row);
  }
  for (auto& [name, row] : fields) rows.push_back(std::move(row));
  return rows;
}

std::vector<std::string> why_not(const PlanRow& slower, const PlanRow& faster) {
  const double lost = slower.iteration_s - faster.iteration_s;
  std::vector<std::string> lines;
  if (lost <= 0) {
    lines.push_back(fmt::format("It is not slower: {} against {}.", seconds_words(slower.iteration_s),
                                seconds_words(faster.iteration_s)));
    return lines;
  }
  lines.push_back(fmt::format("{} is {} ({:+.1f} %) slower than {}.", slower.summary, seconds_words(lost),
                              100 * lost / faster.iteration_s, faster.summary));
  std::vector<std::size_t> parts(simulator::kParts);
  std::iota(parts.begin(), parts.end(), std::size_t{0});
  const auto change = [&](std::size_t p) { return slower.breakdown_s[p] - faster.breakdown_s[p]; };
  std::stable_sort(parts.begin(), parts.end(), [&](std::size_t a, std::size_t b) { return change(a) > change(b); });
  for (const std::size_t p : parts) {
    if (std::abs(change(p)) < kWorthSaying * faster.iteration_s) continue;
    std::string name(name_of(static_cast<simulator::Part>(p)));
    std::replace(name.begin(), name.end(), '_', ' ');
    lines.push_back(fmt::format("{} {}: {} against {}.", change(p) > 0 ? "Loses with" : "Gains with", name,
                                seconds_words(slower.breakdown_s[p]), seconds_words(faster.breakdown_s[p])));
  }
  return lines;
}

}  // namespace trivium::gui
