// Collectives and transfers that leave a node.
#pragma once

#include "base/units.h"
#include "hardware_profiles/hardware.h"
#include "program/ir/op.h"
#include "program/plan/stack.h"
#include "simulator/collectives/collective_cost.h"

namespace trivium::simulator {

/// Network bandwidth that `ranks_per_node` ranks of one of `sharing` groups on a node reach.
base::BytesPerSecond network_share(const hardware::Node& node, int ranks_per_node, int sharing);

/// Time of a collective over several nodes, late hosts not counted. `inside`: bus bandwidth between the group's ranks
/// of one node (infinite for one rank per node). `once`: as of collective_cost.
base::Seconds network_collective(program::OpKind kind, base::Bytes bytes, const GroupPlacement& group,
                                 const hardware::Node& node, base::BytesPerSecond inside,
                                 const program::StackTraits& stack, double once = 1);

}  // namespace trivium::simulator
