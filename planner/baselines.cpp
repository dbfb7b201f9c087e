#include "planner/baselines.h"

#include <algorithm>
#include <variant>

#include "planner/evaluate.h"
#include "planner/parallel.h"
#include "planner/space.h"
#include "simulator/analytic/sketch.h"

namespace trivium::planner {
namespace {

using program::Infeasible;
using program::Plan;
using program::Recompute;

constexpr int kMostMicroBatch = 64;
constexpr int kMostTensor = 64;

/// A plan that keeps of the request's what is no way to split.
Plan plain(const SearchRequest& request) {
  Plan plan;
  plan.precision = request.job.plan.precision;
  plan.reduce_dtype = request.job.plan.reduce_dtype;
  plan.attention = request.job.plan.attention;
  plan.stack = request.job.plan.stack;
  plan.data = ranks_of(request);
  return plan;
}

/// Splits to try in turn until one fits.
std::vector<Plan> layer_splits(const SearchRequest& request) {
  std::vector<Plan> plans;
  const int ranks = ranks_of(request);
  for (int stages = 1; stages <= std::min<std::int64_t>(ranks, request.job.model.layers); ++stages) {
    if (ranks % stages != 0) continue;
    Plan plan = plain(request);
    plan.schedule = program::Schedule::kSequential;
    plan.pipeline = stages;
    plan.data = ranks / stages;
    plans.push_back(plan);
  }
  return plans;
}

std::vector<Plan> replicas(const SearchRequest& request, int zero_stage) {
  Plan plan = plain(request);
  plan.zero_stage = zero_stage;
  const bool lanes =
      std::ranges::all_of(request.cluster.groups, [](const auto& group) { return group.node.asynchronous_lanes; });
  plan.overlap.gradient_reduction = lanes;
  plan.overlap.parameter_gather = lanes && zero_stage > 0;
  return {plan};
}

std::vector<Plan> tensor_alone(const SearchRequest& request) {
  const int ranks = ranks_of(request);
  int most = 1;
  for (int tensor = 2; tensor <= std::min(ranks, kMostTensor); ++tensor) {
    if (ranks % tensor == 0 && request.job.model.heads % tensor == 0) most = tensor;
  }
  Plan plan = plain(request);
  plan.tensor = most;
  plan.data = ranks / most;
  return {plan};
}

/// The first of the splits that fits, with the least recomputation and then the largest micro-batch; or why none does.
std::variant<Plan, Infeasible> first_that_fits(const SearchRequest& request, const std::vector<Plan>& splits) {
  Infeasible why{"ranks-match", "no split of the devices"};
  for (const Plan& split : splits) {
    const std::int64_t batch = request.job.training.global_batch;
    for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
      for (int samples = kMostMicroBatch; samples > 0; --samples) {
        const std::int64_t step = std::int64_t{samples} * split.data;
        if (samples > 1 && batch % step != 0) continue;
        program::Job job = request.job;
        job.plan = split;
        job.plan.recompute = recompute;
        job.plan.micro_batch = samples;
        if (auto no = refusal(job, request.cluster, ranks_of(request))) {
          why = std::move(*no);
          continue;
        }
        simulator::Sketch sketch(job, request.cluster);
        auto no = request.ignore_memory ? std::nullopt : simulator::out_of_memory(sketch.memory(job.plan));
        if (!no) return job.plan;
        why = std::move(*no);
      }
    }
  }
  return why;
}

}  // namespace

std::vector<Baseline> baselines(const SearchRequest& request, int threads) {
  std::vector<Baseline> all{
      {"naive layer split", "layers on as few stages as hold them, one of which works at a time", {}, ""},
      {"data parallel", "a whole model on every device", {}, ""},
      {"fully sharded", "data parallel with ZeRO-3", {}, ""},
      {"tensor parallel alone", "every matrix over as many devices as the heads allow", {}, ""}};
  const std::vector<std::vector<Plan>> splits{layer_splits(request), replicas(request, 0), replicas(request, 3),
                                              tensor_alone(request)};
  run_parallel(
      all.size(), std::max(1, threads), {},
      [&](std::size_t i) {
        auto found = first_that_fits(request, splits[i]);
        if (auto* no = std::get_if<Infeasible>(&found)) {
          all[i].why_not = std::move(no->reason);
          return;
        }
        program::Job job = request.job;
        job.plan = std::get<Plan>(std::move(found));
        auto played = quick_simulation(job, request.cluster, !request.ignore_memory);
        if (auto* no = std::get_if<Infeasible>(&played)) {
          all[i].why_not = std::move(no->reason);
        } else {
          all[i].runs = Candidate{job.plan, std::get<simulator::Simulation>(std::move(played))};
        }
      },
      [](std::size_t) {});
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
