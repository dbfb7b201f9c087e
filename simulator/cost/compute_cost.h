// How long one kernel takes on a device: pure functions of shapes and constants (docs/cost-model.md).
#pragma once

#include "edge/units.h"
#include "hardware_profiles/hardware.h"
#include "program/op.h"
#include "program/stack.h"

namespace trivium::simulator {

/// Time of a compute op. A device with an OpRate for the kind is costed from what was measured; else by physics: GEMMs by
/// tiles and waves, memory-bound kernels by bytes, never below the host's issue time.
edge::Seconds compute_cost(const program::Op& op, const hardware::Device& device, const program::Habits& habits);

}  // namespace trivium::simulator
