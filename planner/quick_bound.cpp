#include "planner/quick_bound.h"

#include <algorithm>
#include <limits>

#include "simulator/analytic/sketch.h"

namespace trivium::planner {
namespace {

using program::Plan;
using program::Recompute;
using program::Storage;

constexpr int kFewLayers = 2;  // the next shows what a layer adds

/// What a layer adds to a replica of one stage on nodes of one kind.
LayerFacts facts_on(const hardware::NodeGroup& group, const program::Job& job) {
  hardware::Cluster cluster;
  cluster.name = group.node.name;
  cluster.groups.push_back(group);
  const int devices = std::max(1, group.node.devices);
  cluster.groups.front().count = std::max(1, (job.plan.ranks() + devices - 1) / devices);
  std::int64_t passes[2] = {};
  simulator::StageMemory memory[2];
  for (int i = 0; i < 2; ++i) {
    program::Job some = job;
    some.model.layers = kFewLayers + i;
    simulator::Sketch sketch(some, cluster);
    const simulator::Outline outline = sketch.outline(some.plan);
    passes[i] = outline.chunks.front().forward + outline.chunks.front().backward;
    memory[i] = sketch.memory(some.plan).front();
  }
  return {passes[1] - passes[0], memory[1].parameters - memory[0].parameters, memory[1].gradients - memory[0].gradients,
          memory[1].optimizer - memory[0].optimizer, memory[1].activations - memory[0].activations};
}

std::int64_t divided(std::int64_t bytes, std::int64_t parts) { return bytes / std::max<std::int64_t>(1, parts); }

}  // namespace

QuickBound::QuickBound(const program::Job& job, const hardware::Cluster& cluster) : job_(job), cluster_(cluster) {
  for (const hardware::NodeGroup& group : cluster.groups) {
    const hardware::Device& device = group.node.device;
    usable_ = std::max(usable_, static_cast<std::int64_t>(device.memory.value() - device.reserved.value()));
  }
}

LayerFacts QuickBound::work_out(const Plan& plan) const {
  program::Job job = job_;
  job.plan = plan;
  job.plan.pipeline = job.plan.virtual_stages = job.plan.data = job.plan.expert = 1;
  job.plan.schedule = program::Schedule::k1f1b;
  job.plan.zero_stage = job.plan.shard_group = 0;
  job.plan.stage_layers.clear();
  job.plan.stage_recompute.clear();
  job.plan.stage_nodes.clear();
  job.plan.bucket_bytes = 0;
  job.plan.offload = {};
  job.plan.overlap.parameter_gather = false;
  job.training.global_batch = plan.micro_batch;
  LayerFacts least = facts_on(cluster_.groups.front(), job);
  for (std::size_t g = 1; g < cluster_.groups.size(); ++g) {
    least.passes_ps = std::min(least.passes_ps, facts_on(cluster_.groups[g], job).passes_ps);
  }
  return least;
}

const LayerFacts& QuickBound::facts(const Plan& plan) {
  // Where stages recompute differently, the least of them is claimed.
  const bool mixed = !plan.stage_recompute.empty();
  Plan least = plan;
  if (mixed) least.recompute = Recompute::kNone;
  const Key key{least.tensor,    least.context,           least.context_method, least.micro_batch,
                least.recompute, least.sequence_parallel, least.overlap.tensor};
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
  }
  const LayerFacts fresh = work_out(least);
  const std::lock_guard lock(mutex_);
  return known_.try_emplace(key, fresh).first->second;
}

std::int64_t QuickBound::time_ps(const Plan& plan) {
  if (job_.model.experts) return 0;  // layers differ, and experts move: nothing is claimed
  const std::int64_t layers = (job_.model.layers + plan.pipeline - 1) / plan.pipeline;
  return program::micro_batches(plan, job_.training.global_batch) * layers * facts(plan).passes_ps;
}

std::int64_t QuickBound::memory_bytes(const Plan& plan) {
  if (job_.model.experts) return 0;
  const LayerFacts& layer = facts(plan);
  const std::int64_t ranks = std::int64_t{plan.data} * plan.context;
  const std::int64_t shards = plan.shard_group > 0 ? std::int64_t{plan.shard_group} * plan.context : ranks;
  const program::Offload& away = plan.offload;
  const auto kept = [&](std::int64_t bytes, Storage storage, int stage) {
    if (storage != Storage::kNone) return std::int64_t{0};
    return plan.zero_stage >= stage ? divided(bytes, shards) : bytes;
  };
  const std::int64_t state = kept(layer.optimizer, away.optimizer, 1) + kept(layer.gradients, away.gradients, 2) +
                             kept(layer.parameters, away.parameters, 3);
  // The fullest stage has this many layers, the first at least the floor of it; in 1F1B the first keeps the most
  // frames.
  const bool is_even = job_.model.layers % plan.pipeline == 0 && plan.stage_layers.empty();
  const std::int64_t most = (job_.model.layers + plan.pipeline - 1) / plan.pipeline;
  if (!is_even || plan.schedule != program::Schedule::k1f1b || away.activations != Storage::kNone ||
      !plan.stage_recompute.empty() || !plan.stage_nodes.empty()) {
    return most * state;
  }
  const std::int64_t frames =
      std::min<std::int64_t>(plan.pipeline, program::micro_batches(plan, job_.training.global_batch));
  return most * (state + frames * layer.frame);
}

}  // namespace trivium::planner
