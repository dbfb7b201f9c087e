#include "simulator/schedule/step_body.h"

#include <algorithm>
#include <array>
#include <set>

#include "program/ir/turns.h"

namespace trivium::simulator {
namespace {

using program::Lane;
using program::Op;

bool is_rendezvous(const Op& op, bool unlike_replicas) {
  if (!program::is_communication(op.kind)) return false;
  return op.group == program::Group::kPipeline || program::joins_stages(op.group) ||
         (unlike_replicas && program::joins_replicas(op.group));
}

// How long ops [begin, end) take when every lane is idle at the start.
std::int64_t alone(const program::Body& body, const std::vector<std::int64_t>& op_ps, int begin, int end,
                   bool merge_lanes) {
  std::array<std::int64_t, program::kLanes> lane_end{};
  std::vector<std::int64_t> ends(static_cast<std::size_t>(end - begin), 0);
  std::int64_t last = 0;
  for (int i = begin; i < end; ++i) {
    const Op& op = body.ops[static_cast<std::size_t>(i)];
    auto& lane = lane_end[static_cast<std::size_t>(lane_of(op, merge_lanes))];
    std::int64_t start = lane;
    for (const int before : op.after) {
      if (before >= begin) start = std::max(start, ends[static_cast<std::size_t>(before - begin)]);
    }
    lane = ends[static_cast<std::size_t>(i - begin)] = start + op_ps[static_cast<std::size_t>(i)];
    last = std::max(last, lane);
  }
  return last;
}

// Steps of a body keep their order on a lane even where the lane takes what is ready first; the compute lane always
// does.
void chain_lanes(StepBody& body) {
  std::array<std::int32_t, program::kLanes> last;
  last.fill(-1);
  for (std::size_t i = 0; i < body.steps.size(); ++i) {
    BodyStep& step = body.steps[i];
    auto& before = last[static_cast<std::size_t>(step.lane)];
    if (before >= 0 && step.lane != Lane::kCompute) {
      ++step.waits;
      body.steps[static_cast<std::size_t>(before)].next.push_back(static_cast<std::int32_t>(i));
    }
    before = static_cast<std::int32_t>(i);
  }
}

StepBody by_op(const program::Body& body, const std::vector<std::int64_t>& op_ps, bool merge_lanes,
               bool unlike_replicas) {
  StepBody out;
  out.segment_steps.resize(body.segments.size());
  for (std::size_t s = 0; s < body.segments.size(); ++s) {
    const program::Segment& segment = body.segments[s];
    out.segment_steps[s] = segment.end - segment.begin;
    for (int i = segment.begin; i < segment.end; ++i) {
      const Op& op = body.ops[static_cast<std::size_t>(i)];
      BodyStep step;
      step.lane = lane_of(op, merge_lanes);
      step.segment = static_cast<std::int32_t>(s);
      step.op = i;
      step.ps = op_ps[static_cast<std::size_t>(i)];
      step.rendezvous = is_rendezvous(op, unlike_replicas);
      step.group = op.group;
      for (const int before : op.after) {
        if (before < 0 || lane_of(body.ops[static_cast<std::size_t>(before)], merge_lanes) == step.lane) continue;
        ++step.waits;
        out.steps[static_cast<std::size_t>(before)].next.push_back(i);
      }
      out.steps.push_back(std::move(step));
    }
  }
  chain_lanes(out);
  return out;
}

/// The lane that a segment takes: that of all its ops, else the compute lane.
Lane lane_taken(const program::Body& body, const program::Segment& segment, bool merge_lanes) {
  if (segment.begin == segment.end) return Lane::kCompute;
  const auto lane = lane_of(body.ops[static_cast<std::size_t>(segment.begin)], merge_lanes);
  const bool one_lane = std::all_of(body.ops.begin() + segment.begin, body.ops.begin() + segment.end,
                                    [&](const Op& op) { return lane_of(op, merge_lanes) == lane; });
  return one_lane ? lane : Lane::kCompute;
}

/// Whether op `i` of a segment is its first on the lane that the segment takes: then nothing of it runs there before
/// what the op waits for.
bool is_first_on_its_lane(const program::Body& body, const program::Segment& segment, int i, Lane lane,
                          bool merge_lanes) {
  const auto there = [&](const Op& op) { return lane_of(op, merge_lanes) == lane; };
  const auto first = std::find_if(body.ops.begin() + segment.begin, body.ops.begin() + segment.end, there);
  return first - body.ops.begin() == i;
}

StepBody by_segment(const program::Body& body, const std::vector<std::int64_t>& op_ps, bool merge_lanes, bool relaxed) {
  StepBody out;
  out.segment_steps.assign(body.segments.size(), 1);
  for (std::size_t s = 0; s < body.segments.size(); ++s) {
    const program::Segment& segment = body.segments[s];
    BodyStep step;
    step.segment = static_cast<std::int32_t>(s);
    step.lane = lane_taken(body, segment, merge_lanes);
    step.ps = relaxed ? held_by(body, op_ps, segment, step.lane, merge_lanes)
                      : alone(body, op_ps, segment.begin, segment.end, merge_lanes);
    // What an op of this segment waits for in an earlier one, on another lane, the segment waits for.
    std::set<std::int32_t> earlier;
    for (int i = segment.begin; i < segment.end; ++i) {
      if (relaxed && !is_first_on_its_lane(body, segment, i, step.lane, merge_lanes)) continue;
      for (const int before : body.ops[static_cast<std::size_t>(i)].after) {
        if (before < 0 || before >= segment.begin) continue;
        for (std::size_t e = 0; e < s; ++e) {
          if (before >= body.segments[e].begin && before < body.segments[e].end)
            earlier.insert(static_cast<std::int32_t>(e));
        }
      }
    }
    for (const std::int32_t e : earlier) {
      if (out.steps[static_cast<std::size_t>(e)].lane == step.lane) continue;
      ++step.waits;
      out.steps[static_cast<std::size_t>(e)].next.push_back(static_cast<std::int32_t>(s));
    }
    out.steps.push_back(std::move(step));
  }
  chain_lanes(out);
  return out;
}

}  // namespace

StepBody make_steps(const program::Body& body, const std::vector<std::int64_t>& op_ps, Granularity granularity,
                    bool merge_lanes, bool unlike_replicas) {
  // Rendezvous between roles are always seen one by one; such bodies are short.
  const bool rendezvous =
      std::any_of(body.ops.begin(), body.ops.end(), [&](const Op& op) { return is_rendezvous(op, unlike_replicas); });
  StepBody steps = granularity == Granularity::kOp || rendezvous
                       ? by_op(body, op_ps, merge_lanes, unlike_replicas)
                       : by_segment(body, op_ps, merge_lanes, granularity == Granularity::kRelaxedSegment);
  steps.turns = program::turns_of(body);
  std::int32_t begin = 0;
  for (const std::int32_t count : steps.segment_steps) {
    steps.segment_begin.push_back(begin);
    begin += count;
  }
  steps.beside = std::all_of(body.ops.begin(), body.ops.end(),
                             [](const Op& op) { return op.lane == Lane::kData || op.lane == Lane::kCopy; });
  return steps;
}

std::optional<StepBody> merged(const StepBody& by_segment) {
  StepBody out;
  BodyStep all;
  for (const BodyStep& step : by_segment.steps) {
    if (step.op >= 0 || step.lane != Lane::kCompute || step.waits != 0) return std::nullopt;
    all.ps += step.ps;
  }
  out.beside = by_segment.beside;
  out.steps.push_back(all);
  out.segment_steps.push_back(1);
  out.segment_begin.push_back(0);
  out.turns.push_back(0);
  return out;
}

}  // namespace trivium::simulator
