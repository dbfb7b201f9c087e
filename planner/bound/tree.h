// The space as a search looks at it: nodes with a bound on all plans below them, opened one level at a time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "planner/bound/balance.h"
#include "planner/bound/state_bytes.h"
#include "planner/space/space.h"
#include "simulator/analytic/cost_estimator.h"

namespace trivium::planner {

using simulator::kMemoryRule;

/// A split with the values of the levels below that no rule refuses and that take the least time and memory.
program::Plan relaxed(program::Plan split);

/// Plans that were refused together.
struct Rejection {
  program::Infeasible why;  ///< with an empty reason: by a bound on their memory
  program::Plan example;
  std::int64_t plans = 0;
};

/// What the children of a node have in common.
struct Branch {
  program::Plan plan;  ///< with the values of all levels above the children
  std::vector<PlacementChoice> layouts;
  std::vector<ScheduleChoice> shapes;
  std::vector<RecomputeChoice> recompute_choices;
  std::vector<ShardingChoice> states;
  bool balanced = false;           ///< its layers are still to be balanced
  std::int64_t plans_of_each = 0;  ///< below a child
  // Of recompute_choices: what the states of their shape add to the passes, each worked out when first asked for.
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<simulator::ScheduleCosts>> schedule_costs;
};

/// Passes with their ends, once they were walked.
struct PassTimes {
  simulator::ScheduleCosts passes;
  simulator::PassEnds ends;
  program::Plan plan;                    ///< with its layers
  std::vector<char> may_fit;             ///< by state; a state that needs too much is refused
  std::vector<std::int64_t> bounds_ps;   ///< by state, where layers are balanced by its memory; else empty
  std::vector<std::vector<int>> layers;  ///< likewise: of the stages
};

/// What a state means for the layers that a stage may hold: how many fit, and the time of their copies after the norm.
struct StageRoom {
  int most = 0;
  StageLoad copies;
  bool operator==(const StageRoom&) const = default;
};

/// A node of the space. The last level is a plan.
struct Node {
  enum class Level : std::uint8_t { kSplit, kPlacement, kSchedule, kRecompute, kSharding };
  Level level = Level::kSplit;
  bool close = false;                    ///< its bound is as close as it gets: what is next is to open or simulate it
  bool list_scheduled = false;           ///< a plan whose bound is its makespan by segments: next it is simulated
  std::int64_t bound_ps = 0;             ///< no plan below is faster
  std::array<std::int32_t, 5> path{};    ///< by level, its place among its siblings
  std::int64_t plans = 1;                ///< below it
  std::shared_ptr<const Branch> branch;  ///< it is one of; none: of the splits
  std::shared_ptr<const PassTimes> walked;    ///< close recompute choices
  std::shared_ptr<const program::Plan> plan;  ///< close plans, with their layers

  bool is_plan() const { return level == Level::kSharding && close; }
  bool operator<(const Node& other) const {
    return bound_ps != other.bound_ps ? bound_ps < other.bound_ps : path < other.path;
  }
};

/// What comes of a look at a node: what is below it, or the same with a closer bound, and what was refused.
struct Expansion {
  std::vector<Node> nodes;
  std::vector<Rejection> refused;
};

/// Expands nodes. Bounds hold for plans as they are ranked, i.e. by simulation. Thread-safe; the request must outlive
/// it.
///
/// Bounds, from the top: m micro-batches times ceil(layers / stages) layers, in the layout, with nothing recomputed;
/// the closed form of the schedule (simulator::pass_ends); the passes walked in their order; after them the
/// reductions, the norm and the step that a state adds. Every level adds work to that of the level above, or
/// dependencies.
class Tree {
 public:
  explicit Tree(const SearchRequest& request);

  const Space& space() const { return space_; }
  std::vector<Node> roots() const;
  /// Precondition: not node.is_plan().
  Expansion open(const Node& node);
  /// "TP8 PP16 DP8" of the split that the node is below.
  const program::Plan& split_of(const Node& node) const {
    return space_.splits()[static_cast<std::size_t>(node.path[0])];
  }
  std::int64_t micro_batches(const program::Plan& plan) const;

 private:
  program::Job job_of(const program::Plan& plan) const;
  Expansion expand_split(const Node& node);
  Expansion expand_placement_choice(const Node& node);
  Expansion expand_schedule_choice(const Node& node);
  Expansion walk(const Node& node);
  Expansion expand_recompute_choice(const Node& node);
  Expansion settle(const Node& node);
  bool first_stage_may_fit(const Branch& branch, const program::Plan& plan, simulator::CostEstimator& estimator);
  std::vector<char> states_that_may_fit(const Branch& branch, const program::Plan& plan,
                                        simulator::CostEstimator& estimator);
  std::vector<std::vector<StageRoom>> rooms(const Branch& branch, const program::Plan& plan,
                                            simulator::CostEstimator& estimator);
  StageLoad copies_of(const program::Plan& plan, std::size_t stage, std::int64_t one, std::int64_t two) const;
  std::int64_t least_copy_ps(const program::Plan& plan, std::size_t stage, std::int64_t bytes) const;
  bool state_may_fit(const program::Plan& laid, const std::vector<ShardingChoice>& states);
  std::shared_ptr<StateBytes> state_bytes(const program::Plan& plan, const std::vector<ShardingChoice>& states);
  bool layers_wait_for_state(const Branch& branch) const;
  std::vector<std::int64_t> balanced_bounds(const program::Plan& plan, simulator::CostEstimator& estimator,
                                            const std::vector<std::vector<StageRoom>>& rooms) const;
  std::vector<std::vector<int>> layers_of_states(const program::Plan& plan, simulator::CostEstimator& estimator,
                                                 const std::vector<std::vector<StageRoom>>& rooms) const;
  const simulator::ScheduleCosts& sharding_costs(const Branch& branch, std::size_t state);

  const SearchRequest request_;      ///< fields of its plan that are open say nothing
  hardware::Cluster without_links_;  // of request_
  Space space_;
  std::shared_ptr<simulator::SharedCosts> costs_;
  simulator::SharedCosts& shared_;
  std::mutex mutex_;
  std::map<std::vector<int>, std::shared_ptr<StateBytes>> state_bytes_;
};

}  // namespace trivium::planner
