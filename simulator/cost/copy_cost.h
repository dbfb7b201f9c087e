// Copies between a device and its host.
#pragma once

#include "edge/units.h"
#include "hardware_profiles/hardware.h"

namespace trivium::simulator {

/// Time to copy `bytes` from a device to its host or back: bytes / host_link. To disk the node's `sharing` devices copy
/// at once and share its drives: the slower of the two. Omitted: latency, the host's memory bandwidth, the file system.
edge::Seconds copy_cost(edge::Bytes bytes, bool disk, int sharing, const hardware::Node& node);

}  // namespace trivium::simulator
