// Whether a cluster can run a job at all, memory apart.
#pragma once

#include <optional>

#include "hardware_profiles/hardware.h"
#include "program/lower/lower.h"

namespace trivium::simulator {

/// Whether the cluster can run the job at all, memory apart: enough devices, stages on nodes that are there, and on
/// every kind of node that takes part what the plan needs of hardware_profiles/capabilities.h.
std::optional<program::Infeasible> unsupported_by(const program::Job& job, const hardware::Cluster& cluster);

/// Whether the plan's experts are reached by DeepEP or HybridEP, which nodes of the kind (GPUs) do not have.
bool dispatch_lacks_hardware(const program::Plan& plan, const hardware::Node& node);

}  // namespace trivium::simulator
