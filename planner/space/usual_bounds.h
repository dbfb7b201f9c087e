// What a search leaves out unless it is asked for.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "hardware_profiles/hardware.h"
#include "planner/space/constraints.h"

namespace trivium::planner {

/// What closed_unless_allowed leaves out, except tensor collectives that overlap products where the stack has kernels
/// for them; and, on heterogeneous nodes, offload: its bounds are looser there, where layers still wait for the state,
/// and a search takes three times as long. Errors: as closed_unless_allowed.
std::vector<Constraint> usual_bounds(const hardware::Cluster& cluster, const std::string& stack,
                                     const std::vector<std::string>& allowed, const std::set<std::string>& fixed);

}  // namespace trivium::planner
