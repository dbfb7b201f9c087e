// The memory side of Sketch: bytes of a chunk grow by the same amount with every layer.
#include <algorithm>

#include "program/role_tasks.h"
#include "program/schedule.h"
#include "simulator/analytic/sketch.h"

namespace trivium::simulator {
namespace {

using program::ChunkKey;

constexpr int kLayersBuilt = 2;  // the second shows what a layer adds

/// Frames of a chunk: of whole micro-batches, and between the halves of a split backward.
struct Frames {
  int whole = 0, delayed = 0;
};

// Frames of a stage's chunks, those of one kind together. In the steady state of a schedule frames come back as fast as
// they are taken: the first rounds show the most there are.
std::vector<Frames> frames(const program::Plan& plan, const std::vector<int>& kinds, int stage,
                           std::int64_t micro_batches) {
  constexpr std::int64_t kRounds = 4;
  if (plan.schedule == program::Schedule::kGpipe) return {{static_cast<int>(micro_batches), 0}};
  const auto slots = program::schedule_of(plan.schedule, stage, plan.pipeline, plan.virtual_stages,
                                          std::min(micro_batches, kRounds * plan.pipeline));
  std::vector<Frames> frames;
  for (const int kind : kinds) {
    std::vector<int> alike;
    for (std::size_t c = 0; c < kinds.size(); ++c) {
      if (kinds[c] == kind) alike.push_back(static_cast<int>(c));
    }
    frames.push_back({program::frames_needed(slots, alike), program::delayed_frames_needed(slots, alike)});
  }
  return frames;
}

}  // namespace

std::vector<StageMemory> Sketch::memory(const program::Plan& plan) {
  program::Program program;  // no bodies, no tasks: what the layout of memory reads
  program.job = job_;
  program.job.plan = plan;
  const std::int64_t micro_batches = program::micro_batches(plan, job_.training.global_batch);
  const std::vector<ChunkKey> chunks = keys_of(program.job);
  std::vector<int> kind_of;  // by position: the first chunk with an equal key
  for (const ChunkKey& key : chunks) {
    program.kinds.emplace_back().bytes = bytes(key);
    kind_of.push_back(static_cast<int>(std::find(chunks.begin(), chunks.end(), key) - chunks.begin()));
  }
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    program::Role role;
    role.stage = stage;
    std::vector<int> kinds;
    for (int v = 0; v < plan.virtual_stages; ++v) {
      kinds.push_back(kind_of[static_cast<std::size_t>(v * plan.pipeline + stage)]);
    }
    const std::vector<Frames> in_flight = frames(plan, kinds, stage, micro_batches);
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
  KindBytes own;
  const Bytes bytes = (shared_ != nullptr ? *shared_ : own).of(job_, habits_, key);
  bytes_.emplace_back(key, bytes);
  return bytes;
}

}  // namespace trivium::simulator
