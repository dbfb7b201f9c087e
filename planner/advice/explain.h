// Why a plan takes the time it takes, in sentences: every number in them is computed.
#pragma once

#include <string>
#include <vector>

#include "planner/advice/neighbours.h"
#include "simulator/predict/simulate.h"

namespace trivium::planner {

/// Where the time goes; what holds the plan back, with what the simulator says of changes that aim at it; the fullest
/// stage; and which single change to make first. Simulates all neighbours of the plan: seconds for a large one.
/// `simulation`: of `program` on `cluster`.
std::vector<std::string> explain(const program::Program& program, const simulator::Simulation& simulation,
                                 const hardware::Cluster& cluster);

/// The same of neighbours that were tried already: what `try_neighbours` gave for the program's job.
std::vector<std::string> explain(const program::Program& program, const simulator::Simulation& simulation,
                                 const hardware::Cluster& cluster, std::vector<Tried> tried);

}  // namespace trivium::planner
