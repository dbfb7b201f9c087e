// A prepared job, simulated: what predict() and those who need its timeline or disturb its ranks build upon.
#pragma once

#include <stop_token>

#include "base/error.h"
#include "simulator/cost/flops.h"
#include "simulator/iteration/simulation.h"
#include "simulator/predict/prepare.h"

namespace trivium::simulator {

/// Simulates a job that was prepared, in its order or, where it has none, in that of readiness. Cores of one machine
/// run any number of ranks (docs/explanation/cost-model.md). Errors: kUsage for a disturbance of a rank that is not
/// there; kRuntime when the program cannot proceed; kInterrupted where `stop` was asked for, before the start or while
/// ranks were simulated.
base::Result<Simulation> simulate(const Prepared& prepared, const SimulationOptions& options,
                                  const std::stop_token& stop = {});

/// The iteration alone that simulate() finds of an ordered program with links shared (ps). Errors: as simulate().
base::Result<std::int64_t> iteration_ps(const Prepared& prepared, const std::stop_token& stop,
                                        TopologyCache* topologies = nullptr);

}  // namespace trivium::simulator
