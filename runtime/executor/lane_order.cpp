#include "runtime/executor/lane_order.h"

#include <algorithm>
#include <array>

namespace trivium::runtime {
namespace {

using program::Lane;

/// By lane: the last op of [begin, end) of the body on it, or -1.
std::array<int, program::kLanes> last_ops(const program::Body& body, int begin, int end) {
  std::array<int, program::kLanes> last;
  last.fill(-1);
  for (int i = begin; i < end; ++i) last[static_cast<std::size_t>(body.ops[static_cast<std::size_t>(i)].lane)] = i;
  return last;
}

}  // namespace

LaneOrder::LaneOrder(const program::Program& program, const program::Role& role) {
  std::int32_t marks = 0, segments = 0;
  std::array<bool, program::kLanes> used{};
  for (const program::Task& task : role.tasks) {
    const program::Body& body = program.body_of(task);
    first_mark_.push_back(marks);
    first_segment_.push_back(segments);
    marks += static_cast<std::int32_t>(body.ops.size());
    segments += static_cast<std::int32_t>(body.segments.size());
    for (const program::Op& op : body.ops) used[static_cast<std::size_t>(op.lane)] = true;
  }
  awaited_.assign(static_cast<std::size_t>(marks), false);
  waits_.resize(static_cast<std::size_t>(segments));
  for (const Lane lane : {Lane::kTensor, Lane::kContext}) {
    if (used[static_cast<std::size_t>(lane)]) side_lanes_.push_back(lane);
  }
  for (std::size_t t = 0; t < role.tasks.size(); ++t) {
    const program::Task& task = role.tasks[t];
    const program::Body& body = program.body_of(task);
    for (const program::Op& op : body.ops) {
      for (const std::int32_t earlier : op.after) {
        if (earlier >= 0) awaited_[static_cast<std::size_t>(first_mark_[t] + earlier)] = true;
      }
    }
    for (const program::Dependency& d : task.after) {
      const program::Segment& mine = body.segments[static_cast<std::size_t>(d.before)];
      const auto waiting = last_ops(body, mine.begin, mine.end);
      const program::Body& other = program.body_of(role.tasks[static_cast<std::size_t>(d.task)]);
      const bool whole = d.segment == program::kWholeTask;
      const program::Segment& last =
          whole ? other.segments.back() : other.segments[static_cast<std::size_t>(d.segment)];
      const auto ends = last_ops(other, whole ? 0 : last.begin, last.end);
      auto& waits = waits_[static_cast<std::size_t>(first_segment_[t] + d.before)];
      for (std::size_t lane = 0; lane < waiting.size(); ++lane) {
        for (std::size_t from = 0; from < ends.size(); ++from) {
          if (waiting[lane] < 0 || ends[from] < 0 || from == lane) continue;
          const Wait wait{mark_of(d.task, ends[from]), static_cast<Lane>(lane)};
          awaited_[static_cast<std::size_t>(wait.mark)] = true;
          if (std::find(waits.begin(), waits.end(), wait) == waits.end()) waits.push_back(wait);
        }
      }
    }
  }
}

}  // namespace trivium::runtime
