#include "planner/advice/baselines.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <variant>

#include "planner/bound/evaluate.h"
#include "planner/search/parallel.h"
#include "planner/space/space.h"
#include "simulator/analytic/cost_estimator.h"

namespace trivium::planner {
namespace {

using program::Infeasible;
using program::Plan;
using program::Recompute;

constexpr int kLargestMicroBatch = 64;
constexpr int kWidestTensor = 64;

/// A plan that keeps of the request's what is no way to split.
Plan plain(const SearchRequest& request) {
  Plan plan;
  plan.precision = request.job.plan.precision;
  plan.fp8 = request.job.plan.fp8;
  plan.reduce_dtype = request.job.plan.reduce_dtype;
  plan.moment_dtype = request.job.plan.moment_dtype;
  plan.attention = request.job.plan.attention;
  plan.stack = request.job.plan.stack;
  plan.data = ranks_of(request);
  return plan;
}

/// Splits to try in turn until one fits.
std::vector<Plan> layer_splits(const SearchRequest& request) {
  std::vector<Plan> plans;
  const int ranks = ranks_of(request);
  for (int stages = 2; stages <= std::min<std::int64_t>(ranks, request.job.model.layers); ++stages) {
    if (ranks % stages != 0) continue;
    Plan plan = plain(request);
    plan.schedule = program::Schedule::kSequential;
    plan.pipeline = stages;
    plan.data = ranks / stages;
    plans.push_back(plan);
  }
  return plans;
}

/// Where there are lanes for it, with gathers and reductions overlapping the passes or without: overlap needs memory.
std::vector<Plan> replicas(const SearchRequest& request, int zero_stage) {
  const bool lanes =
      std::ranges::all_of(request.cluster.groups, [](const auto& group) { return group.node.asynchronous_lanes; });
  std::vector<Plan> plans;
  for (const bool reduces : {true, false}) {
    for (const bool gathers : {true, false}) {
      if ((reduces && !lanes) || (gathers && (!lanes || zero_stage == 0))) continue;
      Plan plan = plain(request);
      plan.zero_stage = zero_stage;
      plan.overlap.gradient_reduction = reduces;
      plan.overlap.parameter_gather = gathers;
      plans.push_back(plan);
    }
  }
  return plans;
}

std::vector<Plan> tensor_alone(const SearchRequest& request) {
  const int ranks = ranks_of(request);
  int most = 1;
  for (int tensor = 2; tensor <= std::min(ranks, kWidestTensor); ++tensor) {
    if (ranks % tensor == 0 && request.job.model.heads % tensor == 0) most = tensor;
  }
  if (most == 1) return {};
  Plan plan = plain(request);
  plan.tensor = most;
  plan.data = ranks / most;
  return {plan};
}

/// The split with the least recomputation and then the largest micro-batch that fits; or why none does.
std::variant<Plan, Infeasible> that_fits(const SearchRequest& request, const Plan& split,
                                         simulator::SharedCosts& shared, const std::stop_token& stop) {
  Infeasible why{"ranks-match", "no split of the devices"};
  const std::int64_t batch = request.job.training.global_batch;
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
    for (int samples = kLargestMicroBatch; samples > 0 && !stop.stop_requested(); --samples) {
      const std::int64_t step = std::int64_t{samples} * split.data;
      if (samples > 1 && batch % step != 0) continue;
      program::Job job = request.job;
      job.plan = split;
      job.plan.recompute = recompute;
      program::settle_recomputation(job.plan);
      job.plan.micro_batch = samples;
      if (const TrainerRule* rule =
              request.trainer == nullptr ? nullptr : broken_rule(*request.trainer, job.plan, job)) {
        why = {"trainer", fmt::format("{}: {}", request.trainer->trainer, rule->says)};
        continue;
      }
      if (auto no = refusal(job, request.cluster, ranks_of(request))) {
        why = std::move(*no);
        continue;
      }
      simulator::CostEstimator estimator(job, request.cluster, &shared);
      auto no = request.ignore_memory ? std::nullopt : simulator::out_of_memory(estimator.memory(job.plan));
      if (!no) return job.plan;
      why = std::move(*no);
    }
  }
  return why;
}

/// One naive way and the splits it may mean.
struct Way {
  std::vector<Plan> splits;
  bool first = false;   ///< the first split that fits; else the fastest of them
  std::string nothing;  ///< why there is no split
};

/// Without the splits that the request's trainer does not run.
Way expressible(Way way, const SearchRequest& request) {
  const TrainerSpace* trainer = request.trainer;
  if (trainer == nullptr) return way;
  const TrainerRule* broken = nullptr;
  std::erase_if(way.splits, [&](const Plan& split) {
    const TrainerRule* rule = broken_rule(*trainer, split, request.job);
    if (rule != nullptr) broken = rule;
    return rule != nullptr;
  });
  if (way.splits.empty() && broken != nullptr) way.nothing = fmt::format("{}: {}", trainer->trainer, broken->says);
  return way;
}

void try_splits(const SearchRequest& request, const Way& way, const std::stop_token& stop, Baseline& baseline) {
  baseline.why_not = way.nothing;
  simulator::SharedCosts shared;
  for (const Plan& split : way.splits) {
    if (stop.stop_requested() || (way.first && baseline.runs)) return;
    auto found = that_fits(request, split, shared, stop);
    if (auto* no = std::get_if<Infeasible>(&found)) {
      baseline.why_not = std::move(no->reason);
      continue;
    }
    program::Job job = request.job;
    job.plan = std::get<Plan>(std::move(found));
    auto simulated = simulation_that_fits(job, request.cluster, !request.ignore_memory, stop);
    if (auto* no = std::get_if<Infeasible>(&simulated)) {
      baseline.why_not = std::move(no->reason);
      continue;
    }
    Candidate candidate{job.plan, std::get<simulator::Simulation>(std::move(simulated))};
    if (!baseline.runs || candidate.simulation.iteration_s < baseline.runs->simulation.iteration_s) {
      baseline.runs = std::move(candidate);
    }
  }
  if (baseline.runs) baseline.why_not.clear();
}

}  // namespace

std::vector<Baseline> baselines(const SearchRequest& request, int threads, const std::stop_token& stop) {
  std::vector<Baseline> all{
      {"naive layer split", "layers on as few stages as hold them, one of which works at a time", {}, ""},
      {"data parallel", "a whole model on every device", {}, ""},
      {"fully sharded", "data parallel with ZeRO-3", {}, ""},
      {"tensor parallel alone", "every matrix over as many devices as the heads allow", {}, ""}};
  const int ranks = ranks_of(request);
  const std::string heads = fmt::format("{} heads divide over none of {} devices", request.job.model.heads, ranks);
  const std::vector<Way> ways{
      {layer_splits(request), true, fmt::format("no number of stages divides {} devices", ranks)},
      {replicas(request, 0), false, ""},
      {replicas(request, 3), false, ""},
      {tensor_alone(request), false, heads}};
  run_parallel(
      all.size(), threads_for(threads), stop,
      [&](std::size_t i) { try_splits(request, expressible(ways[i], request), stop, all[i]); }, [](std::size_t) {});
  return all;
}

double busy_share(const simulator::Simulation& simulation) {
  double busy = 0;
  for (const auto part : {simulator::Part::kCompute, simulator::Part::kRecompute, simulator::Part::kOptimizer}) {
    busy += simulation.breakdown_s[static_cast<std::size_t>(part)];
  }
  return busy / simulation.iteration_s;
}

double speed_up(const Baseline& baseline, const Candidate& best) {
  return baseline.runs ? baseline.runs->simulation.iteration_s / best.simulation.iteration_s : 0;
}

}  // namespace trivium::planner
