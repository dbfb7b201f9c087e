// What of the plans below a node cannot fit: bounds on memory.
#include <algorithm>

#include "planner/tree.h"
#include "program/schedule.h"

namespace trivium::planner {

using program::Plan;
using simulator::Sketch;
using simulator::StageMemory;
namespace {

// What is there whatever the state is.
std::int64_t passes_of(const StageMemory& memory) { return memory.activations + memory.workspace + memory.reserved; }

}  // namespace

// The first stage keeps the most micro-batches: of most keepings that need too much it says so.
bool Tree::first_stage_may_fit(const Branch& branch, const Plan& plan, Sketch& sketch) {
  if (plan.stage_layers != branch.plan.stage_layers || branch.states.empty()) return true;
  const std::shared_ptr<const StateBytes> state = state_bytes(plan, branch.states);
  const StageMemory passes = Sketch::MemoryByStage(sketch, plan).of(0);
  const std::int64_t left = passes.capacity - passes_of(passes);
  return std::any_of(state->begin(), state->end(), [&](const auto& bytes) { return bytes.front() <= left; });
}

// Frames and workspace are the same in every state, and what a state keeps is the same whatever the passes keep. One
// stage that is too small is enough.
std::vector<char> Tree::states_that_may_fit(const Branch& branch, const Plan& plan, Sketch& sketch) {
  std::vector<char> fit(branch.states.size(), 1);
  if (plan.stage_layers != branch.plan.stage_layers) return fit;  // the states' bytes are of other layers
  const std::shared_ptr<const StateBytes> state = state_bytes(plan, branch.states);
  Sketch::MemoryByStage memory(sketch, plan);
  std::size_t left = fit.size();
  for (int stage = 0; stage < plan.pipeline && left > 0; ++stage) {
    const StageMemory passes = memory.of(stage);
    for (std::size_t i = 0; i < fit.size(); ++i) {
      const std::int64_t bytes = (*state)[i][static_cast<std::size_t>(stage)];
      if (fit[i] == 0 || passes_of(passes) + bytes <= passes.capacity) continue;
      fit[i] = 0;
      --left;
    }
  }
  return fit;
}

// By state and stage, as planner::balanced counts them: what a layer adds is the same for every layer.
std::vector<std::vector<int>> Tree::most_layers(const Branch& branch, const Plan& plan, Sketch& sketch) {
  const auto layers = static_cast<int>(request_.job.model.layers);
  std::vector<std::vector<int>> most(branch.states.size());
  Plan one = plan, two = plan;
  one.stage_layers.assign(static_cast<std::size_t>(plan.pipeline), 1);
  two.stage_layers.assign(static_cast<std::size_t>(plan.pipeline), 2);
  const std::shared_ptr<const StateBytes> of_one = state_bytes(one, branch.states);
  const std::shared_ptr<const StateBytes> of_two = state_bytes(two, branch.states);
  const std::vector<StageMemory> least = sketch.memory(one), more = sketch.memory(two);
  for (std::size_t i = 0; i < most.size(); ++i) {
    for (std::size_t s = 0; s < least.size(); ++s) {
      const std::int64_t needed = passes_of(least[s]) + (*of_one)[i][s];
      const std::int64_t left = least[s].capacity - needed;
      const std::int64_t each = std::max<std::int64_t>(1, passes_of(more[s]) + (*of_two)[i][s] - needed);
      most[i].push_back(left < 0 ? 0 : static_cast<int>(std::min<std::int64_t>(layers, 1 + left / each)));
    }
  }
  return most;
}

// What a state keeps hangs on neither the micro-batch nor the placement, nor on what is recomputed.
std::shared_ptr<const StateBytes> Tree::state_bytes(const Plan& plan, const std::vector<State>& states) {
  Plan plain = with(plan, State{});
  plain.recompute = request_.job.plan.recompute;
  plain.stage_recompute.clear();
  const bool accumulates = micro_batches(plain) > 1, splits = plain.schedule == program::Schedule::kZeroBubble;
  std::vector<int> key{plain.tensor,
                       plain.context,
                       plain.pipeline,
                       plain.data,
                       plain.expert,
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
  auto bytes = std::make_shared<StateBytes>();
  Sketch plain_sketch(job_of(plain), request_.cluster, &shared_);
  Sketch::MemoryByStage without(plain_sketch, plain);
  std::vector<std::size_t> alike;
  std::vector<StageMemory> least;
  for (int stage = 0; stage < plain.pipeline; ++stage) {
    alike.push_back(static_cast<std::size_t>(without.alike(stage)));
    const bool fresh = alike.back() == static_cast<std::size_t>(stage);
    least.push_back(fresh ? without.of(stage) : least[alike.back()]);
  }
  for (const State& state : states) {
    const Plan stated = with(plain, state);
    Sketch sketch(job_of(stated), request_.cluster, &shared_);
    Sketch::MemoryByStage memory(sketch, stated);
    auto& of_state = bytes->emplace_back();
    for (std::size_t s = 0; s < alike.size(); ++s) {
      if (alike[s] != s) {
        of_state.push_back(of_state[alike[s]]);
        continue;
      }
      const StageMemory whole = memory.of(static_cast<int>(s));
      of_state.push_back(whole.parameters + whole.gradients + whole.optimizer + whole.workspace - least[s].workspace +
                         whole.reserved - least[s].reserved);
    }
  }
  const std::lock_guard lock(mutex_);
  return state_bytes_.try_emplace(std::move(key), std::move(bytes)).first->second;
}

}  // namespace trivium::planner
