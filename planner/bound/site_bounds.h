// What links between sites cost every plan whose replicas reach over them.
#pragma once

#include "hardware_profiles/hardware.h"
#include "program/ir/program.h"

namespace trivium::planner {

/// Time (ps) below which no iteration is of a plan with this one's split, placement and nodes, whatever its layers,
/// schedule and state: the gradients of its layers cross the links between the replicas once at least, in two bytes
/// (the least that a search sends). 0 where no replicas of every stage reach over sites that a link joins.
/// Precondition: simulator::misplaced accepts the plan.
std::int64_t least_reduction_ps(const program::Job& job, const hardware::Cluster& cluster);

}  // namespace trivium::planner
