// Collectives and transfers that leave a node.
#pragma once

#include "edge/units.h"
#include "hardware_profiles/hardware.h"
#include "program/op.h"
#include "program/stack.h"
#include "simulator/collectives/collective_cost.h"

namespace trivium::simulator {

/// Network bandwidth that `ranks_per_node` ranks of one of `sharing` groups on a node reach.
edge::BytesPerSecond network_share(const hardware::Node& node, int ranks_per_node, int sharing);

/// Time of a collective over several nodes, late hosts not counted. `inside`: bus bandwidth between the group's ranks
/// of one node (infinite for one rank per node).
edge::Seconds network_collective(program::OpKind kind, edge::Bytes bytes, const GroupPlacement& group,
                                 const hardware::Node& node, edge::BytesPerSecond inside,
                                 const program::Habits& habits);

}  // namespace trivium::simulator
