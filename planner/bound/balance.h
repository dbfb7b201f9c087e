// How many layers every stage gets where stages are not equally fast.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <variant>
#include <vector>

#include "simulator/analytic/cost_estimator.h"

namespace trivium::planner {

/// What a stage takes for one micro-batch (ps): `ends` for embedding and head, `layer` for each layer; and how many
/// layers fit in its memory.
struct StageLoad {
  std::int64_t ends = 0, layer = 0;
  int most = 0;
  std::int64_t of(int layers) const { return ends + layers * layer; }
  bool operator==(const StageLoad&) const = default;
};

/// Never slower: where the layers do not fit.
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// Layers of every stage, one at least: the slowest stage is as fast as any distribution makes it, and of those
/// distributions the stages together take the least time; of equal ones, earlier stages take more. Empty where the
/// layers do not fit. Loads grow by the same with every layer: within what the slowest takes, layers go to the stages
/// where they cost least.
std::vector<int> balance(std::span<const StageLoad> loads, int layers);

/// What the slowest stage takes at best; kNever where the layers do not fit.
std::int64_t slowest(std::span<const StageLoad> loads, int layers);

/// The plan with its layers balanced over its stages, each as fast as the nodes that hold it, with as many layers as
/// fit there (`memory`: whether that counts). Refused by "memory", with no reason, where they fit in no way, and by
/// "balanced-is-even" where they are those that the plan has anyway, unless it names its nodes. Preconditions:
/// `estimator` serves the plan, and the plan has no virtual stages.
std::variant<program::Plan, program::Infeasible> balanced(simulator::CostEstimator& estimator, program::Plan plan,
                                                          int layers, bool memory);

}  // namespace trivium::planner
