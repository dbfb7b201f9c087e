// Which lanes the ops of a body take, and for how long.
#pragma once

#include <cstdint>
#include <vector>

#include "program/ir/program.h"

namespace trivium::simulator {

/// Where an op runs; `merge_lanes`: everything but transfers on the compute lane.
program::Lane lane_of(const program::Op& op, bool merge_lanes);

/// How long a segment keeps a lane at least, from the begin of its first op there to the end of its last: these one
/// after the other, with their waits for other lanes. Of other lanes only ops count that follow one of the segment on
/// this lane: the rest may have begun before it, during earlier segments.
std::int64_t held_by(const program::Body& body, const std::vector<std::int64_t>& op_ps, const program::Segment& segment,
                     program::Lane lane, bool merge_lanes);

}  // namespace trivium::simulator
