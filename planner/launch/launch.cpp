#include "planner/launch/launch.h"

#include <algorithm>
#include <array>

#include "planner/launch/export_parts.h"

namespace trivium::planner::launch {
namespace {

// Read in these versions; a flag that moved since is the first thing to look for when one is refused.
constexpr std::array<TrainerVersion, 5> kTrainers{{
    {Trainer::kMegatron, "megatron", "Megatron-LM", "d98e8a64ddf3", "2026-08-22"},
    {Trainer::kDeepspeed, "deepspeed", "DeepSpeed edaa72212672 with Megatron-DeepSpeed", "4efb479d5317", "2025-07-16"},
    {Trainer::kTorchtitan, "torchtitan", "torchtitan", "v0.2.2", "2026-02-20"},
    {Trainer::kNemo, "nemo", "NeMo", "8cfedd720346", "2025-09-20"},
    {Trainer::kAccelerate, "accelerate", "accelerate", "16cb6eb80dd9", "2026-07-24"},
}};

// No trainer has micro-batches of unlike sizes: the largest that all replicas can hold, and that shares out the batch.
program::Job with_one_size(program::Job job) {
  program::Plan& plan = job.plan;
  if (plan.replica_micro_batch.empty()) return job;
  plan.micro_batch = *std::min_element(plan.replica_micro_batch.begin(), plan.replica_micro_batch.end());
  while (plan.micro_batch > 1 && job.training.global_batch % (std::int64_t{plan.data} * plan.micro_batch) != 0) {
    --plan.micro_batch;
  }
  return job;
}

}  // namespace

std::span<const TrainerVersion> trainers() { return kTrainers; }

const TrainerVersion& version_of(Trainer trainer) {
  return *std::find_if(kTrainers.begin(), kTrainers.end(), [&](const auto& t) { return t.trainer == trainer; });
}

Launch export_plan(const program::Job& given, const hardware::Cluster& cluster, Trainer trainer) {
  const program::Job job = with_one_size(given);
  switch (trainer) {
    case Trainer::kMegatron:
      return export_megatron(job, cluster);
    case Trainer::kDeepspeed:
      return export_deepspeed(job, cluster);
    case Trainer::kTorchtitan:
      return export_torchtitan(job, cluster);
    case Trainer::kNemo:
      return export_nemo(job, cluster);
    case Trainer::kAccelerate:
      return export_accelerate(job, cluster);
  }
  return {};
}

}  // namespace trivium::planner::launch
