#include "calibration/replan/stage_times.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/refuse.h"
#include "calibration/measurements/run_events.h"
#include "calibration/measurements/statistics.h"

namespace trivium::calibration {
namespace {

using program::TaskKind;

constexpr int kEmbedding = -1;  // in place of a layer's number
constexpr int kHead = -2;

bool is_pass(TaskKind kind) {
  return kind == TaskKind::kForward || kind == TaskKind::kBackward || kind == TaskKind::kBackwardWeights;
}

/// Which part of the model an op of a pass belongs to: a layer's number in the model, or one of the ends.
int part_of(const program::Program& program, const program::Chunk& chunk, const program::Task& task,
            const program::Op& op) {
  const program::Body& body = program.body_of(task);
  if (op.layer >= program.kind_of(body).layers) return kHead;  // multi-token prediction goes where the head does
  if (op.layer >= 0) return chunk.first_layer + op.layer;
  const auto at = static_cast<std::int32_t>(&op - body.ops.data());
  for (const program::Segment& segment : body.segments) {
    if (at >= segment.begin && at < segment.end) return segment.name == "embedding" ? kEmbedding : kHead;
  }
  return kEmbedding;
}

using Key = std::tuple<int, int, TaskKind>;  // rank, part, pass

PassSeconds& part_in(RankTimes& times, int part) {
  if (part == kEmbedding) return times.embedding;
  if (part == kHead) return times.head;
  const auto at = std::lower_bound(times.layers.begin(), times.layers.end(), part) - times.layers.begin();
  return times.seconds[static_cast<std::size_t>(at)];
}

}  // namespace

std::vector<RankTimes> rank_times(const program::Program& program, const program::RunRecord& record) {
  if (record.timeline.events.empty()) {
    base::refuse(record.file, "it holds no timeline; run again with --timeline-steps 3 or more");
  }
  std::vector<RankTimes> all(static_cast<std::size_t>(program.mesh.size()));
  for (int rank = 0; rank < program.mesh.size(); ++rank) {
    RankTimes& times = all[static_cast<std::size_t>(rank)];
    times.rank = rank;
    times.stage = program.mesh.coordinates(rank).pipeline;
    times.replica_kind = program.role_of(rank).replica_kind;
    for (const program::Chunk& chunk : program.role_of(rank).chunks) {
      const int layers = program.kinds[static_cast<std::size_t>(chunk.kind)].layers;
      for (int i = 0; i < layers; ++i) times.layers.push_back(chunk.first_layer + i);
    }
    std::sort(times.layers.begin(), times.layers.end());
    times.seconds.resize(times.layers.size());
  }
  std::map<Key, std::map<std::pair<int, const program::Task*>, double>> sums;  // by step and task
  for (const OpEvent& event : op_events(program, record)) {
    if (!is_pass(event.task->kind)) continue;
    const auto& chunk = program.role_of(event.rank).chunks[static_cast<std::size_t>(event.task->chunk)];
    const int part = part_of(program, chunk, *event.task, *event.op);
    sums[{event.rank, part, event.task->kind}][{event.step, event.task}] += event.seconds;
  }
  for (const auto& [key, by_task] : sums) {
    const auto& [rank, part, kind] = key;
    std::vector<double> seconds;
    for (const auto& [task, sum] : by_task) seconds.push_back(sum);
    PassSeconds& pass = part_in(all[static_cast<std::size_t>(rank)], part);
    (kind == TaskKind::kForward    ? pass.forward
     : kind == TaskKind::kBackward ? pass.backward
                                   : pass.weights) = median(std::move(seconds));
  }
  for (RankTimes& times : all) {
    for (const PassSeconds& layer : times.seconds) times.layer_mean += layer.total();
    if (!times.seconds.empty()) times.layer_mean /= static_cast<double>(times.seconds.size());
  }
  return all;
}

}  // namespace trivium::calibration
