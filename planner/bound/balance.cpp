#include "planner/bound/balance.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "program/lower/layout.h"

namespace trivium::planner {
namespace {

// The most layers that keep a stage's load within `limit`, none where even one does not.
std::int64_t room(const StageLoad& load, int layers, std::int64_t limit) {
  const std::int64_t most = std::min(load.most, layers);
  if (most < 1 || load.of(1) > limit) return 0;
  return load.layer <= 0 ? most : std::min(most, (limit - load.ends) / load.layer);
}

/// Neighbouring stages with the same load.
struct Run {
  const StageLoad* load = nullptr;
  std::int64_t stages = 0;
};

std::vector<Run> runs_of(std::span<const StageLoad> loads) {
  std::vector<Run> runs;
  for (const StageLoad& load : loads) {
    if (runs.empty() || *runs.back().load != load) runs.push_back({&load, 0});
    ++runs.back().stages;
  }
  return runs;
}

// No less than this holds all layers: what parts of layers would take, less what rounding may add to it.
std::int64_t below_all(const std::vector<Run>& runs, int layers) {
  constexpr double kSure = 1 - 1e-9;
  double whole = layers, parts = 0;
  for (const Run& run : runs) {
    if (run.load->layer <= 0) return 0;  // it holds as many as fit
    const auto stages = static_cast<double>(run.stages), layer = static_cast<double>(run.load->layer);
    whole += stages * static_cast<double>(run.load->ends) / layer;
    parts += stages / layer;
  }
  return static_cast<std::int64_t>(std::max(0.0, whole / parts * kSure));
}

/// A run that would hold one layer more at this limit.
struct Step {
  std::int64_t limit = 0;
  const Run* run = nullptr;
  std::int64_t held = 0;  ///< by each of its stages, with that layer
  bool operator>(const Step& other) const { return limit > other.limit; }
};

}  // namespace

std::vector<int> balance(std::span<const StageLoad> loads, int layers) {
  const std::int64_t limit = slowest(loads, layers);
  if (limit == kNever) return {};
  std::vector<std::size_t> cheapest_first(loads.size());
  std::iota(cheapest_first.begin(), cheapest_first.end(), std::size_t{0});
  std::stable_sort(cheapest_first.begin(), cheapest_first.end(),
                   [&](std::size_t a, std::size_t b) { return loads[a].layer < loads[b].layer; });
  std::vector<int> counts(loads.size(), 1);
  std::int64_t left = layers - static_cast<std::int64_t>(loads.size());
  for (const std::size_t stage : cheapest_first) {
    const std::int64_t more = std::min(left, room(loads[stage], layers, limit) - 1);
    counts[stage] += static_cast<int>(more);
    left -= more;
  }
  return counts;
}

std::int64_t slowest(std::span<const StageLoad> loads, int layers) {
  if (loads.size() > static_cast<std::size_t>(layers)) return kNever;
  const std::vector<Run> runs = runs_of(loads);
  std::int64_t limit = below_all(runs, layers), fit = 0;
  for (const Run& run : runs) {
    if (run.load->most < 1) return kNever;
    limit = std::max(limit, run.load->of(1));
    fit += run.stages * std::min(run.load->most, layers);
  }
  if (fit < layers) return kNever;
  // From a limit that is too low, or the one that is wanted, a layer at a time.
  std::int64_t held = 0;
  std::vector<Step> steps;
  for (const Run& run : runs) {
    const std::int64_t here = room(*run.load, layers, limit);
    held += run.stages * here;
    if (here < std::min(run.load->most, layers)) {
      steps.push_back({run.load->of(static_cast<int>(here + 1)), &run, here + 1});
    }
  }
  if (held >= layers) return limit;
  std::make_heap(steps.begin(), steps.end(), std::greater<>());
  while (true) {
    std::pop_heap(steps.begin(), steps.end(), std::greater<>());
    Step& step = steps.back();
    held += step.run->stages;
    if (held >= layers) return step.limit;
    const StageLoad& load = *step.run->load;
    if (step.held < std::min(load.most, layers)) {
      step.limit = load.of(static_cast<int>(++step.held));
      std::push_heap(steps.begin(), steps.end(), std::greater<>());
    } else {
      steps.pop_back();
    }
  }
}

std::variant<program::Plan, program::Infeasible> balanced(simulator::CostEstimator& estimator, program::Plan plan,
                                                          int layers, bool memory) {
  program::Plan one = plan, two = plan;  // what a layer adds to a stage's memory is the same for every layer
  one.stage_layers.assign(static_cast<std::size_t>(plan.pipeline), 1);
  two.stage_layers.assign(static_cast<std::size_t>(plan.pipeline), 2);
  std::vector<simulator::StageMemory> least, more;
  if (memory) {
    least = estimator.memory(one);
    more = estimator.memory(two);
  }
  std::vector<StageLoad> loads;
  for (const auto& pass : estimator.stage_passes(one)) {
    const std::size_t s = loads.size();
    const simulator::CostEstimator::StageTimes times = pass.all();
    StageLoad load{times.ends, times.layer, layers};
    if (memory) {
      const std::int64_t left = least[s].capacity - least[s].total();
      const std::int64_t each = std::max<std::int64_t>(1, more[s].total() - least[s].total());
      load.most = left < 0 ? 0 : static_cast<int>(std::min<std::int64_t>(layers, 1 + left / each));
    }
    loads.push_back(load);
  }
  std::vector<int> counts = balance(loads, layers);
  if (counts.empty()) return program::Infeasible{"memory", ""};
  if (plan.stage_nodes.empty()) {
    if (counts == program::chunk_layers(layers, plan)) {
      return program::Infeasible{"balanced-is-even", "the balanced layers are the even ones"};
    }
  }
  plan.stage_layers = std::move(counts);
  return plan;
}

}  // namespace trivium::planner
