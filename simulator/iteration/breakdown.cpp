#include "simulator/iteration/breakdown.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace trivium::simulator {
namespace {

using program::Lane;
using program::Op;

constexpr std::array<std::string_view, kParts> kNames{
    "compute",          "recompute",       "exposed_tensor", "exposed_context", "exposed_expert", "exposed_data",
    "exposed_pipeline", "exposed_offload", "bubble",         "optimizer",       "other"};

Part part_of(const Op& op) {
  if (program::is_communication(op.kind)) {
    if (op.lane == Lane::kPipeline) return Part::kExposedPipeline;  // transfers, and what gathers their parts
    switch (op.group) {
      case program::Group::kTensor:
      case program::Group::kKeys:
      case program::Group::kExpertTensor:
        return Part::kExposedTensor;
      case program::Group::kContext:
      case program::Group::kContextHeads:
      case program::Group::kContextRing:
        return Part::kExposedContext;
      case program::Group::kExpert:
        return Part::kExposedExpert;
      case program::Group::kData:
      case program::Group::kShard:
      case program::Group::kReplica:
      case program::Group::kExpertData:
      case program::Group::kEmbedding:
        return Part::kExposedData;
      default:
        return Part::kOptimizer;  // the gradient norm belongs to the step
    }
  }
  if (program::is_copy(op.kind)) return Part::kExposedOffload;
  switch (op.pass) {
    case program::Pass::kRecompute:
      return Part::kRecompute;
    case program::Pass::kOptimizer:
      return Part::kOptimizer;
    default:
      return Part::kCompute;
  }
}

struct Interval {
  std::int64_t begin, end;
};

// Length of `gap` that the sorted intervals cover, cut out of it: what is left comes back in `rest`.
std::int64_t cut(const std::vector<Interval>& busy, std::vector<Interval>& gaps) {
  std::vector<Interval> rest;
  std::int64_t covered = 0;
  for (const Interval& gap : gaps) {
    std::int64_t at = gap.begin;
    auto it = std::partition_point(busy.begin(), busy.end(), [&](const Interval& b) { return b.end <= gap.begin; });
    for (; it != busy.end() && it->begin < gap.end; ++it) {
      const std::int64_t from = std::max(at, it->begin), to = std::min(gap.end, it->end);
      if (to <= from) continue;
      if (from > at) rest.push_back({at, from});
      covered += to - from;
      at = to;
    }
    if (at < gap.end) rest.push_back({at, gap.end});
  }
  gaps = std::move(rest);
  return covered;
}

// A segment span stands for several ops: their own times, and what overlap inside it left, go to their parts.
void split_segment(const program::Body& body, const Span& span, const std::vector<std::int64_t>& ops,
                   Breakdown& parts) {
  const program::Segment& segment = body.segments[static_cast<std::size_t>(span.segment)];
  std::int64_t compute = 0;
  Breakdown mine{};
  Part beside = Part::kExposedTensor;  // what runs on another lane of the segment
  for (int i = segment.begin; i < segment.end; ++i) {
    const Op& op = body.ops[static_cast<std::size_t>(i)];
    if (op.lane == Lane::kContext) beside = Part::kExposedContext;
    if (op.lane == Lane::kTensor) beside = Part::kExposedTensor;
    if (op.lane != span.lane) continue;
    mine[static_cast<std::size_t>(part_of(op))] += ops[static_cast<std::size_t>(i)];
    compute += ops[static_cast<std::size_t>(i)];
  }
  const std::int64_t exposed = span.end_ps - span.begin_ps - compute;  // waiting for another lane inside the segment
  if (exposed > 0) mine[static_cast<std::size_t>(beside)] += exposed;
  // With merged lanes ops of other lanes ran here too; the span is then longer than the compute lane's own ops.
  for (std::size_t p = 0; p < kParts; ++p) parts[p] += mine[p];
}

}  // namespace

std::string_view name_of(Part part) { return kNames.at(static_cast<std::size_t>(part)); }

Breakdown break_down(const program::Program& program, const program::Role& role, const std::vector<Span>& spans,
                     const std::vector<std::vector<std::int64_t>>& op_ps, std::int64_t iteration_ps) {
  Breakdown parts{};
  std::array<std::vector<Interval>, program::kLanes> lanes;
  std::vector<Interval> gaps;
  std::int64_t at = 0;
  for (const Span& span : spans) {
    const program::Task& task = role.tasks[static_cast<std::size_t>(span.task)];
    const program::Body& body = program.body_of(task);
    lanes[static_cast<std::size_t>(span.lane)].push_back({span.begin_ps, span.end_ps});
    if (span.lane != Lane::kCompute) continue;
    if (span.begin_ps > at) gaps.push_back({at, span.begin_ps});
    at = span.end_ps;
    if (span.op >= 0) {
      parts[static_cast<std::size_t>(part_of(body.ops[static_cast<std::size_t>(span.op)]))] +=
          span.end_ps - span.begin_ps;
    } else {
      split_segment(body, span, op_ps[static_cast<std::size_t>(task.body)], parts);
    }
  }
  if (iteration_ps > at) gaps.push_back({at, iteration_ps});
  const auto take = [&](Lane lane, Part part) {
    auto& busy = lanes[static_cast<std::size_t>(lane)];
    const auto earlier = [](const Interval& a, const Interval& b) { return a.begin < b.begin; };
    if (!std::is_sorted(busy.begin(), busy.end(), earlier)) std::sort(busy.begin(), busy.end(), earlier);
    parts[static_cast<std::size_t>(part)] += cut(busy, gaps);
  };
  take(Lane::kTensor, Part::kExposedTensor);
  take(Lane::kContext, Part::kExposedContext);
  take(Lane::kExpert, Part::kExposedExpert);
  take(Lane::kData, Part::kExposedData);
  take(Lane::kPipeline, Part::kExposedPipeline);
  take(Lane::kCopy, Part::kExposedOffload);
  for (const Interval& gap : gaps) parts[static_cast<std::size_t>(Part::kBubble)] += gap.end - gap.begin;
  // Overlap that a segment span hides can make its parts add up to more than the span: compute gives way, never the
  // sum.
  const std::int64_t sum = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  parts[static_cast<std::size_t>(Part::kOther)] += iteration_ps - sum;
  return parts;
}

}  // namespace trivium::simulator
