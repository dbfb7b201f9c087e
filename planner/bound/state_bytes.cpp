#include "planner/bound/state_bytes.h"

#include <utility>

namespace trivium::planner {

using program::Job;
using simulator::CostEstimator;
using simulator::StageMemory;

StateBytes::StateBytes(Job plain, std::vector<ShardingChoice> states, const hardware::Cluster& cluster,
                       simulator::SharedCosts& shared)
    : plain_(std::move(plain)), states_(std::move(states)), cluster_(cluster), shared_(shared), known_(states_.size()) {
  CostEstimator estimator(plain_, cluster_, &shared_);
  CostEstimator::MemoryByStage memory(estimator, plain_.plan);
  for (int stage = 0; stage < plain_.plan.pipeline; ++stage) {
    alike_.push_back(static_cast<std::size_t>(memory.alike(stage)));
    const bool fresh = alike_.back() == static_cast<std::size_t>(stage);
    least_.push_back(fresh ? memory.of(stage) : least_[alike_.back()]);
  }
}

const StateBytes::ByStage& StateBytes::of(std::size_t state) {
  {
    const std::lock_guard lock(mutex_);
    if (known_[state]) return *known_[state];
  }
  auto fresh = std::make_unique<const ByStage>(work_out(states_[state]));
  const std::lock_guard lock(mutex_);
  if (!known_[state]) known_[state] = std::move(fresh);
  return *known_[state];
}

StateBytes::ByStage StateBytes::work_out(const ShardingChoice& state) const {
  const Job stated{plain_.model, plain_.training, with(plain_.plan, state)};
  CostEstimator estimator(stated, cluster_, &shared_);
  CostEstimator::MemoryByStage memory(estimator, stated.plan);
  ByStage bytes;
  for (std::size_t s = 0; s < alike_.size(); ++s) {
    if (alike_[s] != s) {
      bytes.push_back(bytes[alike_[s]]);
      continue;
    }
    const StageMemory whole = memory.of(static_cast<int>(s)), &least = least_[s];
    bytes.push_back({whole.parameters + whole.gradients + whole.optimizer + whole.workspace - least.workspace +
                         whole.reserved - least.reserved,
                     whole.host - least.host});
  }
  return bytes;
}

}  // namespace trivium::planner
