#include "calibration/fit/shapes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "base/refuse.h"
#include "calibration/measurements/run_events.h"
#include "calibration/measurements/statistics.h"
#include "program/ir/op_views.h"

namespace trivium::calibration {
namespace {

using program::Op;
using program::OpKind;
using program::Program;

constexpr double kCut = 4;  // times the step's median: beyond that an event was interrupted, not slow

/// Everything the time of an op depends on.
auto shape_of(const Op& op, int ranks) {
  return std::tuple(op.kind, op.dtype, op.m, op.n, op.k, op.elements, op.heads, op.head_dim, op.sequence, op.window,
                    op.chunked, op.flash, op.weight_transposed, ranks);
}
using Shape = decltype(shape_of(Op{}, 0));

struct Gathered {
  const Op* op = nullptr;
  int ranks = 1;
  std::map<std::pair<int, int>, std::vector<double>> by_step;  // (step, rank) -> seconds
};

double typical(const Gathered& shape) {
  std::vector<double> means;
  for (const auto& [step, seconds] : shape.by_step) {
    const double most = kCut * median(seconds);
    double sum = 0;
    for (const double each : seconds) sum += std::min(each, most);
    means.push_back(sum / static_cast<double>(seconds.size()));
  }
  return median(std::move(means));
}

Terms sizes_of(const Op& op, int ranks) {
  if (!program::is_communication(op.kind)) return {1, op.flops, op.bytes, program::query_blocks(op)};
  return {1, op.kind == OpKind::kAllReduce ? op.bytes * ranks : op.bytes, 0, 0};
}

void add_shape(const Gathered& shape, std::size_t record, double disturbance, KindSamples& to) {
  const double seconds = typical(shape) * disturbance;
  if (seconds <= 0) return;
  std::size_t events = 0;
  for (const auto& [step, each] : shape.by_step) {
    events += each.size();
    for (const double one : each) to.spread.push_back(one / seconds);
  }
  to.samples.push_back({sizes_of(*shape.op, shape.ranks), seconds, seconds * static_cast<double>(events)});
  to.events += events;
  if (std::find(to.records.begin(), to.records.end(), record) == to.records.end()) to.records.push_back(record);
}

/// Time of a step's compute (or communication) over the sum of its ops' typical times, the median over steps and ranks.
double disturbance_of(const std::map<Shape, Gathered>& shapes, bool communication) {
  std::map<std::pair<int, int>, std::pair<double, double>> by_step;  // measured, typical
  for (const auto& [key, shape] : shapes) {
    if (program::is_communication(shape.op->kind) != communication) continue;
    const double usual = typical(shape);
    for (const auto& [step, seconds] : shape.by_step) {
      by_step[step].first += std::accumulate(seconds.begin(), seconds.end(), 0.0);
      by_step[step].second += usual * static_cast<double>(seconds.size());
    }
  }
  std::vector<double> ratios;
  for (const auto& [step, sums] : by_step) {
    if (sums.second > 0) ratios.push_back(sums.first / sums.second);
  }
  return std::max(1.0, median(std::move(ratios)));
}

/// Whether ranks of the group do equal work and meet in every layer. Replicas meet once a step: what they wait there is
/// by how much an iteration's computation parted them, a thousand times what a layer's does.
bool meets_in_layers(program::Group group) {
  using program::Group;
  return group == Group::kTensor || group == Group::kExpertTensor || group == Group::kKeys || group == Group::kContext;
}

/// Mean wait at a collective inside a layer over log2 of its ranks, the median over steps; negative: there was none.
/// The longest twentieth of a step counts as what the others stay below: whoever is interrupted keeps all others
/// waiting.
double late_hosts(const Program& program, const std::vector<OpEvent>& events) {
  constexpr double kUsual = 0.95;
  std::map<int, std::vector<double>> by_step;
  for (const OpEvent& event : events) {
    if (!program::is_communication(event.op->kind) || is_transfer(*event.op)) continue;
    const int ranks = program.mesh.group_size(event.op->group);
    if (ranks < 2 || !meets_in_layers(event.op->group)) continue;
    by_step[event.step].push_back(event.wait / std::log2(static_cast<double>(ranks)));
  }
  std::vector<double> means;
  for (const auto& [step, waits] : by_step) {
    const double most = quantile(waits, kUsual);
    double sum = 0;
    for (const double wait : waits) sum += std::min(wait, most);
    means.push_back(sum / static_cast<double>(waits.size()));
  }
  return means.empty() ? -1 : median(std::move(means));
}

}  // namespace

OpSamples measure(std::span<const program::RunRecord> records) {
  OpSamples result;
  std::vector<double> gaps;
  for (std::size_t r = 0; r < records.size(); ++r) {
    const Program program = program_of(records[r]);
    const std::vector<OpEvent> events = op_events(program, records[r]);
    if (events.empty()) {
      base::refuse(records[r].file, "it holds no timeline; run again with --timeline-steps 3 or more");
    }
    std::map<Shape, Gathered> shapes;
    for (const OpEvent& event : events) {
      const bool communicates = program::is_communication(event.op->kind);
      const int ranks = communicates ? program.mesh.group_size(event.op->group) : 1;
      if (event.op->kind == OpKind::kSend || !event.awaited || (communicates && ranks < 2 && !is_transfer(*event.op)))
        continue;
      Gathered& shape = shapes[shape_of(*event.op, ranks)];
      shape.op = event.op;
      shape.ranks = ranks;
      shape.by_step[{event.step, event.rank}].push_back(event.seconds);
    }
    result.disturbance.push_back(disturbance_of(shapes, false));
    const double late_ends = disturbance_of(shapes, true);
    for (const auto& [key, shape] : shapes) {
      const bool communicates = program::is_communication(shape.op->kind);
      add_shape(shape, r + 1, communicates ? late_ends : result.disturbance.back(),
                communicates ? result.communication : result.compute[program::rate_kind_of(*shape.op)]);
    }
    if (const double late = late_hosts(program, events); late >= 0) result.late.push_back(late);
    gaps.push_back(host_gap(program, records[r]));
  }
  result.host_gap = median(std::move(gaps));
  return result;
}

}  // namespace trivium::calibration
