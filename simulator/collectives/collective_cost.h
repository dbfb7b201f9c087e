// How long collectives and transfers take: by bytes, placement and constants (docs/explanation/cost-model.md).
#pragma once

#include <limits>

#include "base/units.h"
#include "hardware_profiles/hardware.h"
#include "program/ir/op.h"
#include "program/plan/stack.h"

namespace trivium::simulator {

inline constexpr base::BytesPerSecond kUnlimited{std::numeric_limits<double>::infinity()};

/// What a link between sites leaves to one of those that cross it at once.
struct SiteShare {
  base::BytesPerSecond bandwidth = kUnlimited;  ///< of the slowest link crossed
  base::Seconds latency{};                      ///< of the longest
  bool operator==(const SiteShare&) const = default;
};

/// Where the ranks of a group sit.
struct GroupPlacement {
  int ranks = 1;
  int nodes = 1;           ///< nodes the group touches
  int ranks_per_node = 1;  ///< of this group, on its fullest node
  int sharing = 1;         ///< groups of the same kind active on one node at once: they share its network adapters
  // A group that reaches over sites. A ring goes from site to site and back, so it crosses each link once each way.
  SiteShare between{};                         ///< of a ring, with those of its like in the stage
  base::Seconds around{};                      ///< what the links add to a way of ranks - 1 steps along the ring
  base::BytesPerSecond exchange = kUnlimited;  ///< of a rank's buffer, where every rank sends to every other
  bool operator==(const GroupPlacement&) const = default;
};

/// Time of a collective over a group, all members present: kAllReduce, kReduceScatter, kAllGather, kAllToAll,
/// kRingShift. `bytes`: of the whole buffer (all-reduce, all-to-all, ring shift: of a rank's buffer; the others: of the
/// unsharded side). `once`: of what an all-to-all sends to other nodes, what crosses the network, where a node gets
/// once what its ranks then hand on; 1: every rank is sent its own.
base::Seconds collective_cost(program::OpKind kind, base::Bytes bytes, const GroupPlacement& group,
                              const hardware::Node& node, const program::StackTraits& stack, double once = 1);

/// Time of one transfer between two devices; `sharing` transfers leave the node at once (1 inside a node). `between`:
/// of the link that it crosses from site to site.
base::Seconds transfer_cost(base::Bytes bytes, bool same_node, int sharing, const hardware::Node& node,
                            const program::StackTraits& stack, const SiteShare& between = {});

}  // namespace trivium::simulator
