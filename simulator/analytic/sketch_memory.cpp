// The memory side of Sketch: bytes of a chunk grow by the same amount with every layer.
#include <algorithm>

#include "program/role_tasks.h"
#include "program/schedule.h"
#include "simulator/analytic/sketch.h"

namespace trivium::simulator {
namespace {

using program::ChunkKey;

constexpr int kLayersBuilt = 3;  // by then a layer between two others has shown what it adds

// In the schedules' steady state frames come back as fast as they are taken: a few rounds show the most there are.
int frames(const program::Plan& plan, int stage, int chunk, std::int64_t micro_batches) {
  constexpr std::int64_t kRounds = 4;
  const bool unbounded = plan.schedule == program::Schedule::kGpipe;
  if (unbounded) return static_cast<int>(micro_batches);
  const auto slots = program::schedule_of(plan.schedule, stage, plan.pipeline, plan.virtual_stages,
                                          std::min(micro_batches, kRounds * plan.pipeline));
  return program::frames_needed(slots, chunk);
}

}  // namespace

std::vector<StageMemory> Sketch::memory(const program::Plan& plan) {
  program::Program program;  // no bodies, no tasks: what the layout of memory reads
  program.job = job_;
  program.job.plan = plan;
  const std::int64_t micro_batches = program::micro_batches(plan, job_.training.global_batch);
  const std::vector<ChunkKey> chunks = keys_of(program.job);
  for (const ChunkKey& key : chunks) program.kinds.emplace_back().bytes = bytes(key);
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    program::Role role;
    role.stage = stage;
    for (int v = 0; v < plan.virtual_stages; ++v) {
      program::Chunk chunk;
      chunk.kind = v * plan.pipeline + stage;
      chunk.frames = frames(plan, stage, v, micro_batches);
      role.chunks.push_back(chunk);
    }
    program::lay_out_memory(program, role);
    program.roles.push_back(std::move(role));
  }
  return memory_of(program, cluster_);
}

Sketch::Bytes Sketch::bytes(const ChunkKey& key) {
  // Buckets of several layers are padded as they fall: such chunks are built whole.
  if (key.layers <= kLayersBuilt || job_.plan.bucket_bytes > 0) return lowered_bytes(key);
  ChunkKey shorter = key, shortest = key;
  shorter.layers = kLayersBuilt;
  shortest.layers = kLayersBuilt - 1;
  const Bytes more = lowered_bytes(shorter), less = lowered_bytes(shortest);
  Bytes bytes = more;
  for (std::size_t space = 0; space < bytes.size(); ++space) {
    const bool shared =
        static_cast<program::Space>(space) == program::Space::kWorkspace;  // one body, one layer at a time
    if (!shared) bytes[space] += (more[space] - less[space]) * (key.layers - kLayersBuilt);
  }
  return bytes;
}

Sketch::Bytes Sketch::lowered_bytes(const ChunkKey& key) {
  for (const auto& [known, bytes] : bytes_) {
    if (known == key) return bytes;
  }
  std::vector<program::Body> bodies;
  const Bytes bytes = program::make_chunk_kind(job_, habits_, key, 0, bodies).bytes;
  bytes_.emplace_back(key, bytes);
  return bytes;
}

}  // namespace trivium::simulator
