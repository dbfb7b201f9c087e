#include "simulator/cost/lanes.h"

#include <algorithm>
#include <array>

namespace trivium::simulator {

using program::Lane;
using program::Op;

Lane lane_of(const Op& op, bool merge_lanes) {
  return merge_lanes && op.group != program::Group::kPipeline ? Lane::kCompute : op.lane;  // transfers stay apart
}

std::int64_t held_by(const program::Body& body, const std::vector<std::int64_t>& op_ps, const program::Segment& segment,
                     Lane lane, bool merge_lanes) {
  std::array<std::int64_t, program::kLanes> lane_end{};
  std::array<bool, program::kLanes> follows{};  // an op of the segment on `lane`
  std::vector<std::int64_t> ends(static_cast<std::size_t>(segment.end - segment.begin), 0);
  std::vector<bool> held(ends.size(), false);
  for (int i = segment.begin; i < segment.end; ++i) {
    const Op& op = body.ops[static_cast<std::size_t>(i)];
    const Lane here = lane_of(op, merge_lanes);
    auto& end = lane_end[static_cast<std::size_t>(here)];
    bool after = here == lane || follows[static_cast<std::size_t>(here)];
    for (const int before : op.after) {
      if (before < segment.begin) continue;
      const auto at = static_cast<std::size_t>(before - segment.begin);
      end = std::max(end, ends[at]);
      after = after || held[at];
    }
    if (!after) continue;
    const auto at = static_cast<std::size_t>(i - segment.begin);
    follows[static_cast<std::size_t>(here)] = held[at] = true;
    end = ends[at] = end + op_ps[static_cast<std::size_t>(i)];
  }
  return lane_end[static_cast<std::size_t>(lane)];
}

}  // namespace trivium::simulator
