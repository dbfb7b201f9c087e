#include "gui/views/plan_difference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/seconds.h"
#include "gui/timeline/spans/op_totals.h"
#include "gui/timeline/spans/program_spans.h"
#include "program/plan/job_json.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::gui {
namespace {

constexpr std::array<const char*, 2> kWhich{"The first plan", "The second plan"};

std::shared_ptr<const Evaluation> evaluated(const Scenario& scenario, const std::shared_ptr<const Evaluation>& known,
                                            const std::stop_token& stop) {
  const bool is_known = known && known->depth == Depth::kFull && same_job(known->scenario, scenario) &&
                        program::to_json(known->scenario.file) == program::to_json(scenario.file);
  return is_known ? known : std::make_shared<const Evaluation>(evaluate(scenario, Depth::kFull, stop));
}

/// One name for what both plans do, whichever task does it: where the backward of weights is deferred, and who clears
/// gradients, is of the plan.
std::string name_in_any_plan(const std::string& name) {
  constexpr std::string_view kDeferred = "backward weights ", kClears = "zero gradients";
  if (name.starts_with(kDeferred)) return "backward " + name.substr(kDeferred.size());
  return name.ends_with(kClears) ? std::string(kClears) : name;
}

double ranks_in(const SpanStore& store) {
  return static_cast<double>(
      std::max<std::ptrdiff_t>(1, std::count_if(store.rows().begin(), store.rows().end(),
                                                [](const Row& row) { return row.kind == RowKind::kDevice; })));
}

std::vector<OpDifference> ops_of(const std::array<std::shared_ptr<const SpanStore>, 2>& spans,
                                 const std::stop_token& stop) {
  std::map<std::string, OpDifference> by_name;
  for (const std::size_t which : {0, 1}) {
    const SpanStore& store = *spans[which];
    const double ranks = ranks_in(store);
    for (const OpTotal& op : op_totals(store, {store.begin(), store.end(), std::nullopt}, {}, stop)) {
      const std::string name = name_in_any_plan(op.name);
      OpDifference& one = by_name[name];
      if (one.name.empty()) one.category = store.categories()[static_cast<std::size_t>(op.category)];
      one.name = name;
      one.seconds[which] += static_cast<double>(op.ps) * base::kSecondsPerPs / ranks;
      one.spans[which] += static_cast<double>(op.spans) / ranks;
    }
  }
  std::vector<OpDifference> ops;
  for (auto& [name, op] : by_name) ops.push_back(std::move(op));
  std::stable_sort(ops.begin(), ops.end(), [](const OpDifference& a, const OpDifference& b) {
    return std::abs(a.change()) > std::abs(b.change());
  });
  return ops;
}

}  // namespace

PlanDifference plan_difference(const std::array<Scenario, 2>& scenarios, const std::shared_ptr<const Evaluation>& known,
                               const std::stop_token& stop) {
  PlanDifference made;
  try {
    for (const std::size_t which : {0, 1}) {
      made.plans[which] = evaluated(scenarios[which], known, stop);
      const Evaluation& plan = *made.plans[which];
      if (!plan.runs()) {
        made.refusal = std::string(kWhich[which]) + " cannot run: " + plan.refusal;
        return made;
      }
      const simulator::PlacedCluster placed(plan.scenario.file.job.plan, plan.scenario.cluster);
      made.spans[which] = spans_of(*plan.program, *plan.timeline, &placed.get(), stop);
    }
    for (int p = 0; p < simulator::kParts; ++p) {
      const auto at = static_cast<std::size_t>(p);
      made.parts.push_back({static_cast<simulator::Part>(p),
                            {made.plans[0]->figures.breakdown_s[at], made.plans[1]->figures.breakdown_s[at]}});
    }
    made.ops = ops_of(made.spans, stop);
  } catch (const base::Failure& failure) {
    made.refusal = failure.error().message;
  }
  return made;
}

}  // namespace trivium::gui
