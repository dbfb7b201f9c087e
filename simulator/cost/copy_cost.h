// Copies between a device and its host.
#pragma once

#include "base/units.h"
#include "hardware_profiles/hardware.h"
#include "program/ir/op.h"
#include "program/ir/settings.h"
#include "program/plan/stack.h"

namespace trivium::simulator {

/// Time to copy `bytes` from a device to its host or back while all `sharing` devices of the node that take part copy
/// too: bytes g / host_link, where g = min(sharing, devices_per_host_link) neighbours share one link. To disk they
/// share the node's drives: the slower of the two. Omitted: latency, the host's memory bandwidth, the file system;
/// neighbours of other stages, which copy at other times, leave more of the link than this.
base::Seconds copy_cost(base::Bytes bytes, bool disk, int sharing, const hardware::Node& node);

/// Share of a copy's bytes that the stack moves. Where it runs an offloaded optimizer on the host (StackTraits), the
/// Program's copies of state stand for those of fp32 gradients to the host and of parameters back, which do not take
/// place where parameters are offloaded, and are stepped where they are; else 1.
double copied_share(const program::Op& op, const program::Settings& settings, const program::StackTraits& stack);

}  // namespace trivium::simulator
