// Measured rates of a profile, and what they say of an op.
#pragma once

#include "base/units.h"
#include "hardware_profiles/hardware.h"
#include "program/ir/rate_kind.h"

namespace trivium::simulator {

/// What the profile has measured of the kind; of attention without rates of its kernels, those of the other ones.
/// nullptr: nothing.
const hardware::OpRate* find_rate(const hardware::Device& device, program::RateKind kind);

/// overhead + FLOPs + bytes + blocks of queries, each times its rate. `bytes`: those that the device moves for the op.
base::Seconds time_at(const hardware::OpRate& rate, const program::Op& op, double bytes);

}  // namespace trivium::simulator
