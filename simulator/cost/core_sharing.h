// What ops lose when ranks take turns on the cores of one node.
#pragma once

#include "hardware_profiles/hardware.h"
#include "program/ir/program.h"

namespace trivium::simulator {

/// Factor on the time of everything that computes, 1 where every rank has a core or the profile tells nothing. What
/// ranks keep in caches grows with their number: from `Node::core_sharing`, over the logarithm of the bytes of
/// all ranks per core, as many times as the ranks outnumber the cores twofold.
double core_sharing(const program::Program& program, const hardware::Node& node);

}  // namespace trivium::simulator
