// The memory side of Sketch: bytes of a chunk grow by the same amount with every layer.
#include <algorithm>

#include "program/role_tasks.h"
#include "simulator/analytic/sketch.h"

namespace trivium::simulator {
namespace {

using program::ChunkKey;

constexpr int kLayersBuilt = 2;  // the second shows what a layer adds

}  // namespace

std::vector<StageMemory> Sketch::memory(const program::Plan& plan) {
  program::Program program;  // no bodies, no tasks: what the layout of memory reads
  program.job = job_;
  program.job.plan = plan;
  program.habits = habits_;
  const std::int64_t micro_batches = program::micro_batches(plan, job_.training.global_batch);
  const std::vector<ChunkKey> chunks = keys_of(plan);
  std::vector<ChunkKey> different;
  std::vector<int> kind_of;  // by position
  for (const ChunkKey& key : chunks) {
    const auto known = std::find(different.begin(), different.end(), key);
    kind_of.push_back(static_cast<int>(known - different.begin()));
    if (known == different.end()) different.push_back(key);
  }
  program.kinds.resize(different.size());
  for (std::size_t k = 0; k < different.size(); ++k) program.kinds[k].bytes = bytes(different[k]);
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    program::Role role;
    role.stage = stage;
    std::vector<int> kinds;
    for (int v = 0; v < plan.virtual_stages; ++v) {
      kinds.push_back(kind_of[static_cast<std::size_t>(v * plan.pipeline + stage)]);
    }
    const std::vector<Frames> in_flight = shared_->frames(plan, stage, micro_batches, kinds);
    for (int v = 0; v < plan.virtual_stages; ++v) {
      program::Chunk chunk;
      chunk.kind = kinds[static_cast<std::size_t>(v)];
      chunk.frames = in_flight[static_cast<std::size_t>(v)].whole;
      chunk.delayed_frames = in_flight[static_cast<std::size_t>(v)].delayed;
      role.chunks.push_back(chunk);
    }
    program::lay_out_memory(program, role);
    program.roles.push_back(std::move(role));
  }
  return memory_of(program, cluster_);
}

Sketch::Bytes Sketch::bytes(const ChunkKey& key) {
  // Buckets of several layers are padded as they fall, and layers of two kinds do not add the same: such chunks are
  // built whole.
  const bool alike = !job_.model.experts || job_.model.experts->every == 1;
  if (key.layers <= kLayersBuilt || job_.plan.bucket_bytes > 0 || !alike) return lowered_bytes(key);
  ChunkKey shorter = key, shortest = key;
  shorter.layers = kLayersBuilt;
  shortest.layers = kLayersBuilt - 1;
  const Bytes more = lowered_bytes(shorter), less = lowered_bytes(shortest);
  Bytes bytes = more;
  for (std::size_t space = 0; space < bytes.size(); ++space) {
    const auto which = static_cast<program::Space>(space);
    const bool shared = which == program::Space::kWorkspace || which == program::Space::kGathered ||
                        which == program::Space::kStaging;  // a few at a time
    if (!shared) bytes[space] += (more[space] - less[space]) * (key.layers - kLayersBuilt);
  }
  return bytes;
}

Sketch::Bytes Sketch::lowered_bytes(const ChunkKey& key) {
  for (const auto& [known, bytes] : bytes_) {
    if (known == key) return bytes;
  }
  bytes_.emplace_back(key, shared_->bytes(job_, habits_, key));
  return bytes_.back().second;
}

}  // namespace trivium::simulator
