// A job on a cluster, lowered, ordered and simulated: every prediction of this folder comes from here.
#pragma once

#include <string>
#include <variant>

#include "hardware_profiles/hardware.h"
#include "program/program.h"
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

/// Whether it would fit the devices is not asked: what was measured did run.
std::variant<Replayed, Unsupported> replay(const program::Job& job, const hardware::Cluster& cluster,
                                           simulator::Granularity granularity);

}  // namespace trivium::calibration
