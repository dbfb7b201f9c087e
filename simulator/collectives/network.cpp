#include "simulator/collectives/network.h"

#include <algorithm>
#include <cmath>

namespace trivium::simulator {
namespace {

constexpr double kBase = 30e-6;  // s: a collective over several nodes, before its steps (ZeRO-3 runs, Azure)
// Two-node tree, over the ring's efficiency on the adapters: tensor groups of 16 over two 8-GPU nodes reach a bus of
// 1.2 x the node's line rate (vTrain); 1.2 / (2 (n-1)/n at n = 16) / .78 = .82.
constexpr double kTreeEfficiency = 0.82;
constexpr double kTreeInsideHop = 4e-6;  // s: NCCL 2.18 src/graph/tuning.cc, Tree, Simple, NVLink

/// What the stack leaves of the network's efficiency.
double stack_share(const program::StackTraits& stack, const hardware::Node& node) {
  return stack.network_reach < 1 ? std::min(1.0, stack.network_reach / node.network.efficiency) : 1.0;
}

/// Of what two nodes reach: flows of many nodes meet in the switches (Ethernet and EFA; little on InfiniBand).
double reach(const hardware::Node& node, double nodes) { return std::pow(2 / nodes, node.network_falloff); }

}  // namespace

// A rank drives the adapters next to it: at least one, more where the node has more adapters than devices.
base::BytesPerSecond network_share(const hardware::Node& node, int ranks_per_node, int sharing) {
  const double adapters = std::max(1, node.adapters);
  const double near = std::max(1.0, adapters / std::max(1, node.devices)) * std::max(1, ranks_per_node);
  const double used = std::min({adapters, near, adapters / std::max(1, sharing)});
  return node.network.bandwidth * (used * node.network.efficiency);
}

// Ring: every step waits for the slowest hop, so the latency is steps · network hop, linear in the ranks.
// Tree (all-reduce alone): 2 log2(N) hops, and only 2 (N-1)/N S crosses each node's adapters per direction, where the
// ring carries 2 (n-1)/n S. NCCL takes the faster of the two; so do we. Omitted: switch congestion and
// oversubscription, rails, SHARP.
// Between sites a ring has the slower of adapters and link; a message goes round by all links once a pass, as its steps
// overlap those of the others. A tree goes up and down by the link once each. Omitted: what a window of unacknowledged
// data leaves of a long link.
base::Seconds network_collective(program::OpKind kind, base::Bytes bytes, const GroupPlacement& group,
                                 const hardware::Node& node, base::BytesPerSecond inside,
                                 const program::StackTraits& stack, double once) {
  const double n = group.ranks, nodes = group.nodes;
  const base::BytesPerSecond network =
      network_share(node, group.ranks_per_node, group.sharing) * (stack_share(stack, node) * reach(node, nodes));
  if (kind == program::OpKind::kAllToAll) {
    // All messages are under way at once: one hop. Of a rank's buffer (n-r)/n leave its node, (r-1)/n stay in it.
    const double r = group.ranks_per_node;
    // What arrives once is handed on to the ranks of the node.
    const base::Seconds outside = bytes * (once * (n - r) / n * r) / network;
    const base::Seconds within = bytes * ((r - 1) / (once < 1 ? r : n)) / inside;
    const base::Seconds elsewhere = bytes * once / group.exchange;
    return base::Seconds(kBase) + node.network.latency + group.between.latency + std::max({outside, within, elsewhere});
  }
  const bool all_reduce = kind == program::OpKind::kAllReduce;
  const double passes = all_reduce ? 2 : 1;
  const base::Seconds base(kBase), hop = node.network.latency;
  const base::Bytes moved = bytes * (passes * (n - 1) / n);
  const base::BytesPerSecond between = group.between.bandwidth;
  const base::Seconds ring =
      base + hop * (passes * (n - 1)) + group.around * passes + moved / std::min({inside, network, between});
  if (!all_reduce) return ring;
  const double local_steps = 2.0 * std::max(0, group.ranks_per_node - 1);
  const base::Seconds tree_latency = base + hop * (2 * std::ceil(std::log2(nodes))) + group.between.latency * 2 +
                                     base::Seconds(local_steps * kTreeInsideHop);
  const base::Seconds tree_network = bytes * (2 * (nodes - 1) / nodes) / std::min(network * kTreeEfficiency, between);
  const base::Seconds tree = tree_latency + tree_network + moved / inside;
  return std::min(ring, tree);
}

}  // namespace trivium::simulator
