#include "simulator/cost/lanes.h"

namespace trivium::simulator {

using program::Lane;

Lane lane_of(Lane lane, program::Group group, bool merge_lanes) {
  return merge_lanes && group != program::Group::kPipeline ? Lane::kCompute : lane;  // transfers stay apart
}

std::int64_t held_by(const program::Body& body, const std::vector<std::int64_t>& op_ps, const program::Segment& segment,
                     Lane lane, bool merge_lanes) {
  return held_by<program::Op>(body.ops, op_ps, segment.begin, segment.end, lane, merge_lanes);
}

}  // namespace trivium::simulator
