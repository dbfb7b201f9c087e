// Whether a cluster can run a job at all, memory apart.
#pragma once

#include <optional>

#include "hardware_profiles/hardware.h"
#include "program/lower/lower.h"

namespace trivium::simulator {

/// Whether the cluster can run the job at all, memory apart: enough devices, stages on nodes that are there, and on
/// every kind of device that takes part the arithmetic and flash attention.
std::optional<program::Infeasible> unsupported_by(const program::Job& job, const hardware::Cluster& cluster);

}  // namespace trivium::simulator
