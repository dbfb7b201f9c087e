#include "simulator/analytic/sketch.h"

#include <algorithm>
#include <map>

#include "program/layout.h"
#include "program/lower.h"

namespace trivium::simulator {
namespace {

using program::ChunkKey;
using program::Plan;
using program::Program;

// A task for every body of the kind, so that all of them are costed on the stage.
void add_bodies(program::Role& role, const program::ChunkKind& kind, int pipeline) {
  const auto add = [&](int body, int peer = -1) {
    if (body < 0) return;
    program::Task task;
    task.body = body;
    task.peer_stage = peer;
    role.tasks.push_back(task);
  };
  const int after = (role.stage + 1) % pipeline, before = (role.stage + pipeline - 1) % pipeline;
  for (const int body :
       {kind.forward, kind.backward, kind.backward_weights, kind.norm, kind.norm_reduce, kind.optimizer})
    add(body);
  for (const int body : kind.reduce) add(body);
  for (const int body : kind.reduce_replicas) add(body);
  for (const int body : kind.gather) add(body);
  add(kind.send_forward, after);
  add(kind.send_backward, before);
}

}  // namespace

Sketch::Sketch(const program::Job& job, const hardware::Cluster& cluster, KindBytes* shared)
    : job_(job),
      cluster_(cluster),
      placed_(job.plan, cluster),
      habits_(*program::find_habits(job.plan.stack)),
      shared_(shared) {
  job_.plan = program::normalised(job_.plan);
  sharding_ = program::Sharding(job_, habits_);
}

std::vector<ChunkKey> Sketch::keys_of(const program::Job& job) const {
  const std::vector<int> layers = program::chunk_layers(job);
  std::vector<ChunkKey> keys;
  int first_layer = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto recompute = job.plan.stage_recompute.empty() ? job.plan.recompute : job.plan.stage_recompute[i];
    keys.push_back({layers[i], i == 0, i + 1 == layers.size(), recompute, program::phase_of(job.model, first_layer)});
    first_layer += layers[i];
  }
  return keys;
}

void Sketch::cost_kinds() {
  find_alike();
  Program program;
  program.job = job_;
  program.habits = habits_;
  program.mesh = program::Mesh(job_.plan);
  std::vector<program::Recompute> recomputes = job_.plan.stage_recompute;
  if (recomputes.empty()) recomputes.push_back(job_.plan.recompute);
  const int pipeline = job_.plan.pipeline;
  for (const auto recompute : recomputes) {
    for (const bool embedding : {false, true}) {
      for (const bool head : {false, true}) {
        if (embedding && head && pipeline > 1) continue;
        if (embedding != head && pipeline == 1) continue;
        for (const int phase : phases()) {
          const ChunkKey key{1, embedding, head, recompute, phase};
          if (std::find(kinds_.begin(), kinds_.end(), key) != kinds_.end()) continue;
          const int index = static_cast<int>(kinds_.size());
          program.kinds.push_back(program::make_chunk_kind(job_, habits_, key, index, program.bodies));
          kinds_.push_back(key);
        }
      }
    }
  }
  for (int stage = 0; stage < pipeline; ++stage) {
    program::Role role;
    role.stage = stage;
    const bool needed = costed_stage_[static_cast<std::size_t>(stage)] == static_cast<std::size_t>(stage);
    for (std::size_t k = 0; k < kinds_.size() && needed; ++k) {
      const bool lives_here = (!kinds_[k].embedding || stage == 0) && (!kinds_[k].head || stage + 1 == pipeline);
      if (lives_here) add_bodies(role, program.kinds[k], pipeline);
    }
    program.roles.push_back(std::move(role));
  }
  const CostedProgram costed = cost(program, cluster_);
  merged_lanes_ = !costed.asynchronous_lanes;
  costs_.resize(program.roles.size());
  for (const program::Role& role : program.roles) {
    auto& of_stage = costs_[static_cast<std::size_t>(role.stage)];
    of_stage.resize(kinds_.size());
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      const auto forward = static_cast<std::size_t>(program.kinds[k].forward);
      if (!costed.op_ps[static_cast<std::size_t>(role.stage)][forward].empty())
        of_stage[k] = kind_costs(costed, role.stage, k);
    }
  }
}

// The groups of nodes that hold the first and the last rank of a stage, or -1 where a stage does not fill its nodes.
std::pair<int, int> Sketch::groups_of(int stage) const {
  const hardware::Cluster& cluster = placed_.get();
  const int ranks = job_.plan.ranks() / job_.plan.pipeline;
  const auto group_of = [&](int device) {
    int group = 0;
    for (; device >= cluster.groups[static_cast<std::size_t>(group)].count *
                         cluster.groups[static_cast<std::size_t>(group)].node.devices;
         ++group) {
      device -= cluster.groups[static_cast<std::size_t>(group)].count *
                cluster.groups[static_cast<std::size_t>(group)].node.devices;
    }
    const bool begins_node = device % cluster.groups[static_cast<std::size_t>(group)].node.devices == 0;
    return std::pair(group, begins_node);
  };
  const auto [first, begins_node] = group_of(stage * ranks);
  const int last = group_of((stage + 1) * ranks - 1).first;
  const bool fills = begins_node && ranks % cluster.groups[static_cast<std::size_t>(first)].node.devices == 0;
  return fills ? std::pair(first, last) : std::pair(-1, -1);
}

// Middle stages that fill nodes of one group lie there in the same way: the first of them is costed.
void Sketch::find_alike() {
  const bool whole_stages = job_.plan.placement.ends_with("pipeline");
  std::map<int, std::size_t> first_on;  // group -> stage
  for (int stage = 0; stage < job_.plan.pipeline; ++stage) {
    const auto own = static_cast<std::size_t>(stage);
    const auto [begin, end] = groups_of(stage);
    const bool middle = stage > 0 && stage + 1 < job_.plan.pipeline;
    const bool like_others = middle && whole_stages && begin >= 0 && begin == end;
    costed_stage_.push_back(like_others ? first_on.try_emplace(begin, own).first->second : own);
  }
}

std::vector<int> Sketch::phases() const {
  if (!job_.model.experts || job_.model.experts->every == 1) return {0};
  return {0, static_cast<int>(job_.model.experts->every) - 1};
}

int Sketch::mixtures(const ChunkKey& key) const {
  return job_.model.experts ? static_cast<int>((key.phase + key.layers) / job_.model.experts->every) : 0;
}

KindCosts Sketch::costs(const ChunkKey& key, int stage) const {
  const auto of_phase = [&](int phase) {
    const ChunkKey one{1, key.embedding, key.head, key.recompute, phase};
    const auto kind = static_cast<std::size_t>(std::find(kinds_.begin(), kinds_.end(), one) - kinds_.begin());
    return costs_[costed_stage_[static_cast<std::size_t>(stage)]][kind];
  };
  return job_.model.experts ? both(of_phase(phases().front()), of_phase(phases().back())) : of_phase(0);
}

PartTimes Sketch::pass(const Plan& plan, int stage) {
  if (costs_.empty()) cost_kinds();
  program::Job job = job_;
  job.plan = plan;
  const ChunkKey key = keys_of(job)[static_cast<std::size_t>(stage)];
  const KindCosts c = costs(key, stage);
  const std::int64_t ends = c.forward.ends + c.backward.ends + c.weights.ends;
  const std::int64_t dense = c.forward.layer + c.backward.layer + c.weights.layer;
  if (!job_.model.experts) return {ends, dense};
  const std::int64_t every = job_.model.experts->every, mixture = c.forward.mixture + c.backward.mixture;
  return {ends, ((every - 1) * dense + mixture) / every};
}

Outline Sketch::outline(const Plan& plan) {
  if (costs_.empty()) cost_kinds();
  program::Job job = job_;
  job.plan = plan;
  const std::vector<ChunkKey> chunks = keys_of(job);
  Outline outline;
  outline.schedule = plan.schedule;
  outline.pipeline = plan.pipeline;
  outline.virtual_stages = plan.virtual_stages;
  outline.micro_batches = program::micro_batches(plan, job.training.global_batch);
  outline.norm_joins_stages = plan.pipeline > 1;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const int stage = static_cast<int>(i) % plan.pipeline, layers = chunks[i].layers, experts = mixtures(chunks[i]);
    const KindCosts c = costs(chunks[i], stage);
    const Serial serial = serial_of(chunks[i], stage);
    outline.chunks.push_back({c.forward.of(layers, experts) + serial.forward,
                              c.backward.of(layers, experts) + serial.backward, c.send_forward, c.send_backward,
                              c.weights.of(layers, experts)});
    outline.norm_reduce = std::max(outline.norm_reduce, c.norm_reduce);
  }
  for (int stage = 0; stage < plan.pipeline; ++stage) outline.endings.push_back(ending(plan, chunks, stage));
  return outline;
}

// A layer is gathered when the one before it is done and computed when it is gathered, and likewise reduced, where
// nothing runs ahead or beside; cores do all of it one after the other. What may run before the chunk's input came, or
// after its output left, is left out: the first layers gathered and the last reduced.
Sketch::Serial Sketch::serial_of(const ChunkKey& key, int stage) const {
  if (job_.plan.bucket_bytes > 0) return {};
  const KindCosts middle = costs({1, false, false, key.recompute}, stage);
  const auto layer_of = [&](const PartTimes& times) {
    return job_.model.experts ? std::min(times.layer, times.mixture) : times.layer;
  };
  const auto layers = [&](int apart) { return std::max(0, key.layers - 1 - apart); };
  Serial serial;
  if (sharding_.parameters && (merged_lanes_ || sharding_.ahead == 0)) {
    serial.forward = serial.backward = layers(sharding_.ahead) * layer_of(middle.gather);
  }
  if (sharding_.gradients && (merged_lanes_ || !sharding_.overlaps_reduce)) {
    serial.backward += layers(sharding_.overlaps_reduce ? 2 : 0) * layer_of(middle.reduce);
  }
  return serial;
}

Outline::Ending Sketch::ending(const Plan& plan, const std::vector<ChunkKey>& chunks, int stage) const {
  Outline::Ending ending;
  if (plan.bucket_bytes > 0) return ending;  // buckets of several layers: nothing is claimed of them
  std::int64_t apart = 0, replicas = 0;
  const std::int64_t micro_batches = program::micro_batches(plan, job_.training.global_batch);
  for (int v = 0; v < plan.virtual_stages; ++v) {
    const ChunkKey& chunk = chunks[static_cast<std::size_t>(v * plan.pipeline + stage)];
    const KindCosts c = costs(chunk, stage), middle = costs({1, false, false, chunk.recompute}, stage);
    const int layers = chunk.layers, experts = mixtures(chunk);
    if (v == 0) ending.first_optimizer = c.first_optimizer;
    if (!sharding_.gradients) {
      ending.reduce += c.reduce.of(layers, experts);
      apart = std::max(apart, c.reduce_apart);
    }
    const std::int64_t collectives =
        (sharding_.parameters ? 2 * middle.gather.of(layers, experts) : 0) + middle.reduce.of(layers, experts);
    if (sharding_.gradients) ending.data += micro_batches * collectives;
    if (sharding_.gathers_first) ending.data += middle.gather.of(layers, experts);
    replicas += c.replicas.of(layers, experts);
    ending.norm += middle.norm.of(layers, experts);
    ending.optimizer += c.optimizer.of(layers, experts);
    if (sharding_.parameters || sharding_.gathers_first) continue;
    ending.gathers += c.gather.of(layers, experts);
    ending.last_gather = c.last_gather;
  }
  ending.reduce = std::max(ending.reduce, apart);
  const bool beside = !merged_lanes_ && plan.overlap.gradient_reduction;
  if (beside || sharding_.gradients) ending.reduce = costs(chunks[static_cast<std::size_t>(stage)], stage).first_reduce;
  if (!beside) ending.reduce += replicas;
  if (merged_lanes_) {
    ending.optimizer += ending.gathers;
    ending.gathers = ending.data = 0;
  }
  return ending;
}

}  // namespace trivium::simulator
