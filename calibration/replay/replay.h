// A job on a cluster, lowered, ordered and simulated: every prediction of this folder comes from here.
#pragma once

#include <stop_token>
#include <string>
#include <variant>

#include "hardware_profiles/hardware.h"
#include "program/ir/program.h"
#include "simulator/simulate.h"

namespace trivium::calibration {

/// Why there is no prediction.
struct Unsupported {
  std::string reason;
};

struct Replayed {
  program::Program program;  ///< ordered
  simulator::Simulation simulation;
};

/// The job's ordered Program. Unsupported where `stop` asked to give it up.
std::variant<program::Program, Unsupported> prepare(const program::Job& job, const hardware::Cluster& cluster,
                                                    const std::stop_token& stop = {});

/// Whether only the op level sees all overlap of the job: collectives inside bodies that run beside their kernels.
/// Without them whole segments give the same times, many times faster.
bool needs_ops(const program::Job& job);

/// Whether it would fit the devices is not asked: what was measured did run. `timeline`: kept in the simulation.
/// Unsupported where `stop` asked to give it up.
std::variant<Replayed, Unsupported> replay(const program::Job& job, const hardware::Cluster& cluster,
                                           simulator::Granularity granularity, bool timeline = false,
                                           const std::stop_token& stop = {});

}  // namespace trivium::calibration
