// A job on a cluster, prepared and simulated: every prediction of this folder comes from here.
#pragma once

#include <stop_token>

#include "base/error.h"
#include "hardware_profiles/hardware.h"
#include "simulator/simulate.h"

namespace trivium::calibration {

struct Replayed {
  simulator::Prepared prepared;
  simulator::Simulation simulation;
};

/// Whether only the op level sees all overlap of the job: collectives inside op sequences that overlap with their
/// kernels. Without them, replaying whole segments gives the same times, many times faster.
bool needs_ops(const program::Job& job);

/// Whether it would fit the devices is not asked: what was measured did run. `timeline`: kept in the simulation.
/// The cluster must outlive the result. Errors: as simulator::prepare() and simulator::simulate().
base::Result<Replayed> replay(const program::Job& job, const hardware::Cluster& cluster,
                              simulator::Granularity granularity, bool timeline = false,
                              const std::stop_token& stop = {});

}  // namespace trivium::calibration
