// What all-reduce reaches inside one node, as a benchmark sees it: an affine curve per group size.
#pragma once

#include "base/units.h"
#include "hardware_profiles/hardware.h"

namespace trivium::simulator {

/// Ring all-reduce of S bytes over n ranks: latency + 2 (n-1)/n S / bus.
struct RingCurve {
  base::Seconds latency;
  base::BytesPerSecond bus;

  base::Seconds all_reduce(base::Bytes bytes, int ranks) const;
};

/// The curve of `ranks` >= 2 devices of a node: from the measured tables, interpolated over log2(ranks), else from the
/// link. Nothing else runs at the same time: training reaches less (collective_cost).
RingCurve node_curve(const hardware::Node& node, int ranks);

/// That of reduce-scatters, all-gathers and the like: as above unless the switch sums all-reduces by itself
/// (Node::gather_bus).
RingCurve gather_curve(const hardware::Node& node, int ranks);

}  // namespace trivium::simulator
