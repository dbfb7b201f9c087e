// What of the plans below a node cannot fit: bounds on memory.
#include <algorithm>

#include "base/seconds.h"
#include "planner/bound/tree.h"
#include "program/schedules/schedule.h"
#include "simulator/cost/copy_cost.h"

namespace trivium::planner {

using base::kPsPerSecond;
using program::Plan;
using simulator::CostEstimator;
using simulator::StageMemory;
namespace {

// Whether the states hold the same one without overlap and with shards over all replicas: it needs no more memory.
bool has_smaller(const std::vector<ShardingChoice>& states, const ShardingChoice& state) {
  ShardingChoice smaller = state;
  smaller.shard_group = 0;
  smaller.gradient_reduction = smaller.parameter_gather = false;
  return !(smaller == state) && std::find(states.begin(), states.end(), smaller) != states.end();
}

// What is there whatever the state is.
std::int64_t passes_of(const StageMemory& memory) { return memory.activations + memory.workspace + memory.reserved; }

bool fits(const StageMemory& passes, const StateBytes::Bytes& state) {
  return passes_of(passes) + state.device <= passes.capacity && passes.host + state.host <= passes.host_capacity;
}

}  // namespace

// The first stage keeps the most micro-batches: of most recompute choices that need too much it says so. States that
// keep the least come last.
bool Tree::first_stage_may_fit(const Branch& branch, const Plan& plan, CostEstimator& estimator) {
  if (plan.stage_layers != branch.plan.stage_layers || branch.states.empty()) return true;
  CostEstimator::MemoryByStage memory(estimator, plan);
  std::shared_ptr<StateBytes> state;
  const auto may_fit = [&](const StageMemory& passes) {
    if (passes.activations > passes.capacity) return false;
    if (!state) state = state_bytes(plan, branch.states);
    for (std::size_t i = state->states(); i-- > 0;) {
      if (fits(passes, state->of(i).front())) return true;
    }
    return false;
  };
  return may_fit(memory.least_of(0)) && may_fit(memory.of(0));
}

// Frames and workspace are the same in every state, and what a state keeps is the same whatever the passes keep. One
// stage that is too small is enough; what layers keep alone shows it of most.
std::vector<char> Tree::states_that_may_fit(const Branch& branch, const Plan& plan, CostEstimator& estimator) {
  std::vector<char> fit(branch.states.size(), 1);
  CostEstimator::MemoryByStage memory(estimator, plan);
  std::shared_ptr<StateBytes> state;
  std::size_t left = fit.size();
  const auto look_at = [&](int stage, const StageMemory& passes) {
    if (passes.activations > passes.capacity) {
      fit.assign(fit.size(), 0);
      left = 0;
      return;
    }
    if (!state) state = state_bytes(plan, branch.states);
    for (std::size_t i = 0; i < fit.size(); ++i) {
      if (fit[i] == 0 || fits(passes, state->of(i)[static_cast<std::size_t>(stage)])) continue;
      fit[i] = 0;
      --left;
    }
  };
  for (int stage = 0; stage < plan.pipeline && left > 0; ++stage) look_at(stage, memory.least_of(stage));
  for (int stage = 0; stage < plan.pipeline && left > 0; ++stage) look_at(stage, memory.of(stage));
  return fit;
}

// No kind of node that may hold the stage copies faster.
std::int64_t Tree::least_copy_ps(const Plan& plan, std::size_t stage, std::int64_t bytes) const {
  if (program::find_stack(plan.stack)->host_adam > 0) return 0;  // gradients and parameters go instead of the state
  std::int64_t least = kNever;
  for (std::size_t g = 0; g < request_.cluster.groups.size(); ++g) {
    const hardware::Node& node = request_.cluster.groups[g].node;
    if (!plan.stage_nodes.empty() && plan.stage_nodes[stage] != static_cast<int>(g)) continue;
    if (!node.asynchronous_lanes) return 0;  // nothing is claimed of copies among the passes
    const base::Seconds time = simulator::copy_cost(base::Bytes(static_cast<double>(bytes)), false,
                                                    std::min(node.devices, plan.ranks()), node);
    least = std::min(least, static_cast<std::int64_t>(time.value() * kPsPerSecond));
  }
  return least;
}

// Offloaded sharded state is copied in and out after the norm, except for the first two buckets, which are fetched
// before it: those of two layers, or the embedding's and a layer's, or, with one layer, that and the head's. `one`,
// `two`: offloaded bytes with so many layers.
StageLoad Tree::copies_of(const Plan& plan, std::size_t stage, std::int64_t one, std::int64_t two) const {
  if (two <= one) return {};
  const std::int64_t layer = least_copy_ps(plan, stage, two - one), ends = least_copy_ps(plan, stage, 2 * one - two);
  const std::int64_t beyond = stage == 0 ? ends - layer : std::min(2 * ends, ends + layer) - 2 * layer;
  return {beyond, 2 * layer, 0};
}

// By state and stage. How many layers fit is counted as planner::balanced counts it: what a layer adds is the same for
// every layer.
std::vector<std::vector<StageRoom>> Tree::rooms(const Branch& branch, const Plan& plan, CostEstimator& estimator) {
  const auto layers = static_cast<int>(request_.job.model.layers);
  std::vector<std::vector<StageRoom>> rooms(branch.states.size());
  Plan one = plan, two = plan;
  one.stage_layers.assign(static_cast<std::size_t>(plan.pipeline), 1);
  two.stage_layers.assign(static_cast<std::size_t>(plan.pipeline), 2);
  const std::shared_ptr<StateBytes> of_one = state_bytes(one, branch.states);
  const std::shared_ptr<StateBytes> of_two = state_bytes(two, branch.states);
  const std::vector<StageMemory> least = estimator.memory(one), more = estimator.memory(two);
  const bool layers_alike = !request_.job.model.experts;
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    const StateBytes::ByStage &first = of_one->of(i), &second = of_two->of(i);
    for (std::size_t s = 0; s < least.size(); ++s) {
      const std::int64_t needed = passes_of(least[s]) + first[s].device;
      const std::int64_t left = least[s].capacity - needed;
      const std::int64_t each = std::max<std::int64_t>(1, passes_of(more[s]) + second[s].device - needed);
      StageRoom room;
      room.most = left < 0 ? 0 : static_cast<int>(std::min<std::int64_t>(layers, 1 + left / each));
      if (layers_alike) room.copies = copies_of(plan, s, first[s].host, second[s].host);
      rooms[i].push_back(room);
    }
  }
  return rooms;
}

// Layers may lie on any stage, so what all stages keep of a state must fit all of them together, whatever the shape.
bool Tree::state_may_fit(const Plan& laid, const std::vector<ShardingChoice>& states) {
  constexpr double kSure = 1.01;  // kinds of chunks round their buckets up
  if (!request_.cluster.homogeneous() || states.empty()) return true;
  const hardware::Node& node = request_.cluster.groups.front().node;
  const double device = laid.pipeline * (node.device.memory - node.device.reserved).value() * kSure;
  const double host = laid.pipeline * node.host_memory.value() / std::min(node.devices, laid.ranks()) * kSure;
  const std::shared_ptr<StateBytes> bytes = state_bytes(laid, states);
  for (std::size_t i = states.size(); i-- > 0;) {
    if (has_smaller(states, states[i])) continue;
    double kept = 0, away = 0;
    for (const StateBytes::Bytes& stage : bytes->of(i)) {
      kept += static_cast<double>(stage.device);
      away += static_cast<double>(stage.host);
    }
    if (kept <= device && away <= host) return true;
  }
  return false;
}

// What a state keeps depends on neither the micro-batch nor the placement, nor on what is recomputed.
std::shared_ptr<StateBytes> Tree::state_bytes(const Plan& plan, const std::vector<ShardingChoice>& states) {
  Plan plain = with(plan, ShardingChoice{});
  plain.recompute = program::Recompute::kNone;  // which goes with offloaded activations
  plain.stage_recompute.clear();
  program::settle_recomputation(plain);
  const bool accumulates = micro_batches(plain) > 1, splits = program::traits_of(plain.schedule).splits_backward;
  std::vector<int> key{plain.tensor,
                       plain.context,
                       plain.pipeline,
                       plain.data,
                       plain.expert,
                       plain.expert_tensor,
                       static_cast<int>(plain.fp8_parameter_gather),
                       plain.virtual_stages,
                       plain.sequence_parallel,
                       static_cast<int>(plain.offload.activations),
                       accumulates,
                       splits};
  key.push_back(static_cast<int>(states.size()));
  key.insert(key.end(), plain.stage_layers.begin(), plain.stage_layers.end());
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = state_bytes_.find(key); known != state_bytes_.end()) return known->second;
  }
  auto bytes = std::make_shared<StateBytes>(job_of(plain), states, request_.cluster, shared_);
  const std::lock_guard lock(mutex_);
  return state_bytes_.try_emplace(std::move(key), std::move(bytes)).first->second;
}

}  // namespace trivium::planner
