// One job on one cluster, simulated: the figures everything else shows.
#pragma once

#include <stop_token>

#include "base/error.h"
#include "simulator/cost/flops.h"
#include "simulator/cost/supported.h"
#include "simulator/iteration/simulation.h"

namespace trivium::simulator {

/// Simulates an ordered program (or, in the order of readiness, one that is not). Cores of one machine run any number
/// of ranks, in turns (docs/cost-model.md). Errors: kUsage when the cluster has too few devices or lacks the precision;
/// kRuntime when the program cannot proceed; kInterrupted where `stop` was asked for, before the start or while ranks
/// were played.
base::Result<Simulation> simulate(const program::Program& program, const hardware::Cluster& cluster,
                                  const SimulationOptions& options, const std::stop_token& stop = {});

/// The iteration alone that simulate() finds of an ordered program with links shared (ps). Errors: as simulate().
base::Result<std::int64_t> iteration_ps(const program::Program& program, const hardware::Cluster& cluster,
                                        const std::stop_token& stop, TopologyCache* topologies = nullptr);

}  // namespace trivium::simulator
