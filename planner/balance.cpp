#include "planner/balance.h"

#include <algorithm>
#include <numeric>

#include "program/layout.h"

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

// Whether all layers find room on stages of one at least.
bool holds(const std::vector<Run>& runs, int layers, std::int64_t limit) {
  std::int64_t held = 0;
  for (const Run& run : runs) {
    const std::int64_t here = room(*run.load, layers, limit);
    if (here == 0) return false;
    held += run.stages * here;
  }
  return held >= layers;
}

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
  std::int64_t low = 0, high = 0;  // does not hold, holds
  for (const Run& run : runs) {
    low = std::max(low, run.load->of(1));
    high = std::max(high, run.load->of(layers));
  }
  if (!holds(runs, layers, high)) return kNever;
  if (holds(runs, layers, low)) return low;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (holds(runs, layers, middle) ? high : low) = middle;
  }
  return high;
}

std::variant<program::Plan, program::Infeasible> balanced(simulator::Sketch& sketch, program::Plan plan, int layers,
                                                          bool memory) {
  program::Plan one = plan, two = plan;  // what a layer adds to a stage's memory is the same for every layer
  one.stage_layers.assign(static_cast<std::size_t>(plan.pipeline), 1);
  two.stage_layers.assign(static_cast<std::size_t>(plan.pipeline), 2);
  std::vector<simulator::StageMemory> least, more;
  if (memory) {
    least = sketch.memory(one);
    more = sketch.memory(two);
  }
  std::vector<StageLoad> loads;
  for (const auto& pass : sketch.stage_passes(one)) {
    const std::size_t s = loads.size();
    const simulator::PartTimes times = pass.all();
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
