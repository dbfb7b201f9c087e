// Which lanes the ops of a body take, and for how long.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "program/ir/program.h"

namespace trivium::simulator {

/// Where an op runs; `merge_lanes`: everything but transfers on the compute lane.
program::Lane lane_of(program::Lane lane, program::Group group, bool merge_lanes);
inline program::Lane lane_of(const program::Op& op, bool merge_lanes) {
  return lane_of(op.lane, op.group, merge_lanes);
}

/// How long a segment keeps a lane at least, from the begin of its first op there to the end of its last: these one
/// after the other, with their waits for other lanes. Of other lanes only ops count that follow one of the segment on
/// this lane: the rest may have begun before it, during earlier segments.
std::int64_t held_by(const program::Body& body, const std::vector<std::int64_t>& op_ps, const program::Segment& segment,
                     program::Lane lane, bool merge_lanes);

/// The same of ops [begin, end) of a body, of which lane, group and `after` count.
template <class AnyOp>
std::int64_t held_by(std::span<const AnyOp> ops, std::span<const std::int64_t> op_ps, int begin, int end,
                     program::Lane lane, bool merge_lanes) {
  std::array<std::int64_t, program::kLanes> lane_end{};
  std::array<bool, program::kLanes> follows{};                                // an op of the segment on `lane`
  std::vector<std::int64_t> ends(static_cast<std::size_t>(end - begin), -1);  // of ops that follow one on `lane`
  for (int i = begin; i < end; ++i) {
    const AnyOp& op = ops[static_cast<std::size_t>(i)];
    const program::Lane here = lane_of(op.lane, op.group, merge_lanes);
    std::int64_t& lane_ends = lane_end[static_cast<std::size_t>(here)];
    bool after = here == lane || follows[static_cast<std::size_t>(here)];
    for (const int before : op.after) {
      if (before < begin) continue;
      const std::int64_t ended = ends[static_cast<std::size_t>(before - begin)];
      lane_ends = std::max(lane_ends, ended);
      after = after || ended >= 0;
    }
    if (!after) continue;
    follows[static_cast<std::size_t>(here)] = true;
    lane_ends = ends[static_cast<std::size_t>(i - begin)] = lane_ends + op_ps[static_cast<std::size_t>(i)];
  }
  return lane_end[static_cast<std::size_t>(lane)];
}

}  // namespace trivium::simulator
