#include "simulator/analytic/kind_bytes.h"

#include <vector>

#include "program/schedule.h"

namespace trivium::simulator {

KindBytes::Fields KindBytes::fields_of(const program::Plan& plan, const program::ChunkKey& key) {
  const int replicas = plan.zero_stage > 0 ? plan.data : plan.data > 1 ? 2 : 1;
  return {plan.tensor,
          plan.sequence_parallel,
          plan.context,
          plan.expert,
          plan.zero_stage,
          plan.shard_group,
          replicas,
          plan.micro_batch,
          program::splits_backward(plan.schedule),
          plan.overlap.gradient_reduction,
          plan.overlap.parameter_gather,
          plan.overlap.tensor,
          plan.offload.optimizer,
          plan.offload.activations,
          key.layers,
          key.embedding,
          key.head,
          key.recompute};
}

KindBytes::Bytes KindBytes::of(const program::Job& job, const program::Habits& habits, const program::ChunkKey& key) {
  const Fields fields = fields_of(job.plan, key);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(fields); found != known_.end()) return found->second;
  }
  std::vector<program::Body> bodies;
  const Bytes bytes = program::make_chunk_kind(job, habits, key, 0, bodies).bytes;
  const std::lock_guard lock(mutex_);
  known_.emplace(fields, bytes);
  return bytes;
}

}  // namespace trivium::simulator
