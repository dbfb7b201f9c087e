#include "gui/model/memory_curve.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/seconds.h"
#include "simulator/cost/costed_program.h"

namespace trivium::gui {
namespace {

using base::kSecondsPerPs;

std::int64_t bytes_of(const program::ChunkTemplate& kind, program::Space space) {
  return kind.bytes[static_cast<std::size_t>(space)];
}

/// From when to when a micro-batch holds something.
struct Life {
  std::int64_t begin = -1, end = -1;
  std::int64_t bytes = 0;
  void cover(const program::Event& event) {
    if (begin < 0 || event.start_ps < begin) begin = event.start_ps;
    end = std::max(end, event.end_ps);
  }
};

}  // namespace

std::vector<MemoryPoint> memory_curve(const Evaluation& evaluation, const simulator::StageMemory& memory) {
  const program::Program& program = *evaluation.program;
  const program::Role& role = program.roles.at(static_cast<std::size_t>(memory.role));
  const int rank = program.representative(role);
  using Key = std::pair<int, int>;  // chunk and micro-batch
  std::map<Key, Life> frames, delayed;
  for (const program::Event& event : evaluation.timeline->events) {
    if (event.rank != rank) continue;
    const program::Task& task = role.tasks[static_cast<std::size_t>(event.task)];
    if (task.micro_batch < 0) continue;
    const bool forward = task.kind == program::TaskKind::kForward;
    const bool backward = task.kind == program::TaskKind::kBackward;
    const bool weights = task.kind == program::TaskKind::kBackwardWeights;
    const program::Chunk& chunk = role.chunks[static_cast<std::size_t>(task.chunk)];
    const program::ChunkTemplate& kind = program.kinds[static_cast<std::size_t>(chunk.kind)];
    const Key key{task.chunk, task.micro_batch};
    if (forward || backward) {
      frames[key].cover(event);
      frames[key].bytes = bytes_of(kind, program::Space::kFrame) + bytes_of(kind, program::Space::kTokens);
    }
    const bool half = backward && !program::is_whole_backward(program, task);
    if ((half || weights) && chunk.deferred_frames > 0) {
      delayed[key].cover(event);
      delayed[key].bytes = bytes_of(kind, program::Space::kDeferred);
    }
  }
  std::map<std::int64_t, std::array<std::int64_t, 2>> changes;  // ps -> bytes of either kind that come or go
  for (const std::size_t kind : {0, 1}) {
    for (const auto& [key, life] : kind == 0 ? frames : delayed) {
      changes[life.begin][kind] += life.bytes;
      changes[life.end][kind] -= life.bytes;
    }
  }
  const std::int64_t always = memory.total() - memory.activations;
  std::vector<MemoryPoint> curve{{0, always, 0, 0}};
  for (const auto& [ps, bytes] : changes) {
    if (bytes[0] == 0 && bytes[1] == 0) continue;
    const std::int64_t in_frames = curve.back().frames + bytes[0], later = curve.back().deferred + bytes[1];
    curve.push_back({static_cast<double>(ps) * kSecondsPerPs, always + in_frames + later, in_frames, later});
  }
  MemoryPoint last = curve.back();
  last.seconds = evaluation.figures.iteration_s;
  curve.push_back(last);
  return curve;
}

}  // namespace trivium::gui
