#include "planner/balance.h"

#include <algorithm>
#include <limits>

#include "program/layout.h"

namespace trivium::planner {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// best[s][n]: the least cost of giving n layers to the first s stages. `join` adds a stage's load to what is before it;
// loads above `limit` are not allowed.
struct Table {
  std::vector<std::vector<std::int64_t>> best;
  std::vector<std::vector<int>> taken;  // by the last of the stages

  template <class Join>
  Table(std::span<const StageLoad> loads, int layers, std::int64_t limit, Join join) {
    const auto stages = loads.size();
    const auto width = static_cast<std::size_t>(layers) + 1;
    best.assign(stages + 1, std::vector<std::int64_t>(width, kNever));
    taken.assign(stages + 1, std::vector<int>(width, 0));
    best[0][0] = 0;
    for (std::size_t s = 1; s <= stages; ++s) {
      const StageLoad& load = loads[s - 1];
      for (int k = 1; k <= std::min(load.most, layers) && load.of(k) <= limit; ++k) {
        for (int n = k; n <= layers; ++n) {
          const std::int64_t before = best[s - 1][static_cast<std::size_t>(n - k)];
          if (before == kNever) continue;
          const std::int64_t cost = join(before, load.of(k));
          if (cost >= best[s][static_cast<std::size_t>(n)]) continue;
          best[s][static_cast<std::size_t>(n)] = cost;
          taken[s][static_cast<std::size_t>(n)] = k;
        }
      }
    }
  }
};

// No distribution that counts is slower than the even one, where that fits.
std::int64_t even_limit(std::span<const StageLoad> loads, int layers) {
  const int stages = static_cast<int>(loads.size());
  const int share = (layers + stages - 1) / stages;
  std::int64_t slowest = 0;
  for (const StageLoad& load : loads) {
    if (load.most < share) return kNever;
    slowest = std::max(slowest, load.of(share));
  }
  return slowest;
}

}  // namespace

std::vector<int> balance(std::span<const StageLoad> loads, int layers) {
  const auto last = static_cast<std::size_t>(layers);
  const auto slower = [](std::int64_t a, std::int64_t b) { return std::max(a, b); };
  const std::int64_t most = Table(loads, layers, even_limit(loads, layers), slower).best.back()[last];
  if (most == kNever) return {};
  const auto sum = [](std::int64_t a, std::int64_t b) { return a + b; };
  const Table table(loads, layers, most, sum);
  std::vector<int> counts(loads.size());
  for (std::size_t s = loads.size(), left = last; s > 0; --s) {
    counts[s - 1] = table.taken[s][left];
    left -= static_cast<std::size_t>(counts[s - 1]);
  }
  return counts;
}

std::int64_t slowest(std::span<const StageLoad> loads, int layers) {
  const auto slower = [](std::int64_t a, std::int64_t b) { return std::max(a, b); };
  const std::int64_t limit = even_limit(loads, layers);
  return Table(loads, layers, limit, slower).best.back()[static_cast<std::size_t>(layers)];
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
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    const auto s = static_cast<std::size_t>(stage);
    const simulator::PartTimes times = sketch.pass(one, stage);
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
    program::Job even;  // what chunk_layers reads
    even.model.layers = layers;
    even.plan = plan;
    if (counts == program::chunk_layers(even)) {
      return program::Infeasible{"balanced-is-even", "the balanced layers are the even ones"};
    }
  }
  plan.stage_layers = std::move(counts);
  return plan;
}

}  // namespace trivium::planner
