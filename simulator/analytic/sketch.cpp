#include "simulator/analytic/sketch.h"

#include <algorithm>

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
  for (const int body : {kind.forward, kind.backward, kind.norm, kind.norm_reduce, kind.optimizer}) add(body);
  for (const int body : kind.reduce) add(body);
  for (const int body : kind.gather) add(body);
  add(kind.send_forward, after);
  add(kind.send_backward, before);
}

}  // namespace

Sketch::Sketch(const program::Job& job, const hardware::Cluster& cluster)
    : job_(job), cluster_(cluster), habits_(*program::find_habits(job.plan.stack)) {
  job_.plan = program::normalised(job_.plan);
}

std::vector<ChunkKey> Sketch::keys_of(const program::Job& job) const {
  const std::vector<int> layers = program::chunk_layers(job);
  std::vector<ChunkKey> keys;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto recompute = job.plan.stage_recompute.empty() ? job.plan.recompute : job.plan.stage_recompute[i];
    keys.push_back({layers[i], i == 0, i + 1 == layers.size(), recompute});
  }
  return keys;
}

void Sketch::cost_kinds() {
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
        const ChunkKey key{1, embedding, head, recompute};
        if (embedding && head && pipeline > 1) continue;
        if (embedding != head && pipeline == 1) continue;
        if (std::find(kinds_.begin(), kinds_.end(), key) != kinds_.end()) continue;
        const int index = static_cast<int>(kinds_.size());
        program.kinds.push_back(program::make_chunk_kind(job_, habits_, key, index, program.bodies));
        kinds_.push_back(key);
      }
    }
  }
  for (int stage = 0; stage < pipeline; ++stage) {
    program::Role role;
    role.stage = stage;
    const bool needed = static_cast<int>(costed_stage(stage)) == stage;
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

// Whether all stages but the first and the last lie on their nodes in the same way.
bool Sketch::middle_stages_alike() const {
  if (!cluster_.homogeneous() || !job_.plan.placement.ends_with("pipeline")) return false;
  const int ranks_of_stage = job_.plan.ranks() / job_.plan.pipeline;
  return ranks_of_stage % cluster_.groups.front().node.devices == 0;
}

std::size_t Sketch::costed_stage(int stage) const {
  const bool middle = stage > 0 && stage + 1 < job_.plan.pipeline;
  return static_cast<std::size_t>(middle && middle_stages_alike() ? 1 : stage);
}

const KindCosts& Sketch::costs(const ChunkKey& key, int stage) const {
  const ChunkKey one{1, key.embedding, key.head, key.recompute};
  const auto kind = static_cast<std::size_t>(std::find(kinds_.begin(), kinds_.end(), one) - kinds_.begin());
  return costs_[costed_stage(stage)][kind];
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
    const KindCosts& c = costs(chunks[i], static_cast<int>(i) % plan.pipeline);
    outline.chunks.push_back(
        {c.forward.of(chunks[i].layers), c.backward.of(chunks[i].layers), c.send_forward, c.send_backward});
    outline.norm_reduce = std::max(outline.norm_reduce, c.norm_reduce);
  }
  for (int stage = 0; stage < plan.pipeline; ++stage) outline.endings.push_back(ending(plan, chunks, stage));
  return outline;
}

Outline::Ending Sketch::ending(const Plan& plan, const std::vector<ChunkKey>& chunks, int stage) const {
  Outline::Ending ending;
  if (plan.bucket_bytes > 0) return ending;  // buckets of several layers: nothing is claimed of them
  std::int64_t apart = 0;
  for (int v = 0; v < plan.virtual_stages; ++v) {
    const ChunkKey& chunk = chunks[static_cast<std::size_t>(v * plan.pipeline + stage)];
    const KindCosts& c = costs(chunk, stage);
    const KindCosts& middle = costs({1, false, false, chunk.recompute}, stage);
    if (v == 0) ending.first_optimizer = c.first_optimizer;
    ending.reduce += c.reduce.of(chunk.layers);
    apart = std::max(apart, c.reduce_apart);
    ending.norm += chunk.layers * middle.norm_layer;
    ending.optimizer += c.optimizer.of(chunk.layers);
    ending.gathers += c.gather.of(chunk.layers);
    ending.last_gather = c.last_gather;
  }
  ending.reduce = std::max(ending.reduce, apart);
  if (merged_lanes_) {
    ending.optimizer += ending.gathers;
    ending.gathers = 0;
  } else if (plan.overlap.gradient_reduction) {
    ending.reduce = costs(chunks[static_cast<std::size_t>(stage)], stage).first_reduce;
  }
  return ending;
}

}  // namespace trivium::simulator
