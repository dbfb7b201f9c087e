#include "simulator/collectives/collective_cost.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "simulator/collectives/network.h"
#include "simulator/collectives/node_curve.h"

namespace trivium::simulator {
namespace {

using program::OpKind;

/// Hosts of a group do not arrive together; the wait grows with the tree of ranks.
base::Seconds late_hosts(const hardware::Node& node, int ranks) {
  return node.collective_skew * std::log2(static_cast<double>(ranks));
}

/// Communicators of one machine's cores: every rank reads what it sums or copies through shared memory: n S for an
/// all-reduce (every rank sums all n buffers), S for its part of n buffers or for the n parts of one.
base::Seconds shared_memory_time(OpKind kind, base::Bytes bytes, int ranks, const hardware::Node& node) {
  const double reads = kind == OpKind::kAllReduce ? ranks : 1;
  return node.intra.latency + bytes * reads / (node.intra.bandwidth * node.intra.efficiency);
}

/// All-reduce: latency + 2 (n-1)/n S / bus; its halves, and an all-to-all, in which every rank sends (n-1)/n S, move
/// half the bytes at the same bus, each with the latency. Inside a training step collectives share
/// memory and multiprocessors with kernels and start on warm channels: Physics says what they keep of the curve.
base::Seconds inside_time(OpKind kind, base::Bytes bytes, int ranks, const hardware::Node& node) {
  RingCurve curve = kind == OpKind::kAllReduce ? node_curve(node, ranks) : gather_curve(node, ranks);
  curve.latency = curve.latency * node.device.physics.collective_latency;
  curve.bus = curve.bus * node.device.physics.collective_bus;
  return curve.all_reduce(kind == OpKind::kAllReduce ? bytes : bytes * 0.5, ranks);
}

}  // namespace

base::Seconds collective_cost(OpKind kind, base::Bytes bytes, const GroupPlacement& group, const hardware::Node& node,
                              const program::StackTraits& stack, double once) {
  assert(kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter || kind == OpKind::kAllGather ||
         kind == OpKind::kAllToAll || kind == OpKind::kRingShift);
  if (group.ranks <= 1) return base::Seconds(0);
  // Neighbours exchange; a node that the ring enters it also leaves, once for each of the groups that share it.
  if (kind == OpKind::kRingShift) {
    return transfer_cost(bytes, group.nodes == 1, group.sharing, node, stack, group.between);
  }
  const base::Seconds late = late_hosts(node, group.ranks);
  if (group.nodes > 1) {
    const base::BytesPerSecond inside =
        group.ranks_per_node > 1 ? gather_curve(node, group.ranks_per_node).bus * node.device.physics.collective_bus
                                 : base::BytesPerSecond(std::numeric_limits<double>::infinity());
    return late + network_collective(kind, bytes, group, node, inside, stack, once);
  }
  if (node.topology == hardware::Topology::kSharedMemory) {
    return late + shared_memory_time(kind, bytes, group.ranks, node);
  }
  return late + inside_time(kind, bytes, group.ranks, node);
}

base::Seconds transfer_cost(base::Bytes bytes, bool same_node, int sharing, const hardware::Node& node,
                            const program::StackTraits&, const SiteShare& between) {
  if (same_node) {
    // Cores are not as even as GPUs: of two that exchange one is late, as at a collective.
    const base::Seconds late =
        node.topology == hardware::Topology::kSharedMemory ? late_hosts(node, 2) : base::Seconds(0);
    return late + node.intra.latency + bytes / (node.intra.bandwidth * node.intra.efficiency);
  }
  return node.network.latency + between.latency + bytes / std::min(network_share(node, 1, sharing), between.bandwidth);
}

}  // namespace trivium::simulator
