// What all-reduce reaches inside one node, as a benchmark sees it: an affine curve per group size.
#pragma once

#include "edge/units.h"
#include "hardware_profiles/hardware.h"

namespace trivium::simulator {

/// Ring all-reduce of S bytes over n ranks: latency + 2 (n-1)/n S / bus.
struct RingCurve {
  edge::Seconds latency;
  edge::BytesPerSecond bus;

  edge::Seconds all_reduce(edge::Bytes bytes, int ranks) const;
};

/// The curve of `ranks` >= 2 devices of a node: from the measured tables, interpolated over log2(ranks), else from the
/// link. Nothing else runs beside it: training reaches less (collective_cost).
RingCurve node_curve(const hardware::Node& node, int ranks);

}  // namespace trivium::simulator
