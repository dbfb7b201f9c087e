// Which part of a predicted peak a trainer's own figures hold.
#pragma once

#include "hardware_profiles/hardware.h"

namespace trivium::calibration {

/// Bytes that a prediction counts and an allocator (`max_memory_allocated`) does not: the device's context and
/// communication buffers.
inline double beside_allocator(const hardware::Cluster& cluster) {
  return cluster.groups.front().node.device.reserved.value();
}

}  // namespace trivium::calibration
