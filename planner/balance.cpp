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

// Whether all layers find room on stages of one at least.
bool holds(std::span<const StageLoad> loads, int layers, std::int64_t limit) {
  std::int64_t held = 0, here = 0;
  const StageLoad* last = nullptr;
  for (const StageLoad& load : loads) {
    const bool alike =
        last != nullptr && load.ends == last->ends && load.layer == last->layer && load.most == last->most;
    if (!alike) here = room(load, layers, limit);
    if (here == 0) return false;
    held += here;
    last = &load;
  }
  return held >= layers && loads.size() <= static_cast<std::size_t>(layers);
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
  std::int64_t low = 0, high = 0;  // does not hold, holds
  for (const StageLoad& load : loads) {
    low = std::max(low, load.of(1));
    high = std::max(high, load.of(layers));
  }
  if (!holds(loads, layers, high)) return kNever;
  if (holds(loads, layers, low)) return low;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (holds(loads, layers, middle) ? high : low) = middle;
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
