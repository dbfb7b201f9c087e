// Whether overlapped tensor collectives that go through the memory of peers can run where a plan's ranks lie.
#pragma once

#include <optional>

#include "hardware_profiles/hardware.h"
#include "program/lower/lower.h"

namespace trivium::simulator {

/// Why tensor collectives in user buffers or symmetric memory cannot run for this plan on this cluster; nothing where
/// they can: every tensor group lies inside one node, an NVLink domain whose devices reach each other's memory. Cores,
/// which share one memory, run any. It looks at the plan's split, placement and nodes only, whether or not it overlaps.
/// Precondition: program::check accepts the plan and misplaced(plan, cluster) is nothing; ranks may exceed the devices.
std::optional<program::Infeasible> without_peer_buffers(const program::Plan& plan, const hardware::Cluster& cluster);

/// Whether the plan's stack overlaps through the memory of peers, and some kind of node does not let it.
bool some_lack_peer_buffers(const program::Plan& plan, const hardware::Cluster& cluster);

/// Why the plan's own overlap.tensor cannot run there: nothing where it is off or its stack overlaps with NCCL.
std::optional<program::Infeasible> tensor_overlap_refused(const program::Plan& plan, const hardware::Cluster& cluster);

}  // namespace trivium::simulator
