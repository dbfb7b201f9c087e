#include "simulator/collectives/node_curve.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

namespace trivium::simulator {
namespace {

/// Value at `ranks`, linear in log2(ranks) between the table's neighbours and constant beyond its ends.
template <class Value>
Value interpolate(const std::map<int, Value>& table, int ranks) {
  const auto above = table.lower_bound(ranks);
  if (above == table.end()) return std::prev(above)->second;
  if (above == table.begin() || above->first == ranks) return above->second;
  const auto below = std::prev(above);
  const double share = std::log2(static_cast<double>(ranks) / below->first) /
                       std::log2(static_cast<double>(above->first) / below->first);
  return below->second + (above->second - below->second) * share;
}

/// A ring has 2 (n-1) steps: beyond the largest group measured, the latency grows with them.
base::Seconds latency_of(const hardware::Node& node, int ranks) {
  const auto& table = node.allreduce_latency;
  if (table.empty()) return node.intra.latency * (2.0 * (ranks - 1));
  const int largest = table.rbegin()->first;
  const base::Seconds known = interpolate(table, ranks);
  return ranks > largest && largest > 1 ? known * (static_cast<double>(ranks - 1) / (largest - 1)) : known;
}

}  // namespace

base::Seconds RingCurve::all_reduce(base::Bytes bytes, int ranks) const {
  return latency + bytes * (2.0 * (ranks - 1) / ranks) / bus;
}

RingCurve node_curve(const hardware::Node& node, int ranks) {
  RingCurve curve;
  curve.latency = latency_of(node, ranks);
  curve.bus = node.allreduce_bus.empty() ? node.intra.bandwidth * node.intra.efficiency
                                         : interpolate(node.allreduce_bus, ranks);
  return curve;
}

RingCurve gather_curve(const hardware::Node& node, int ranks) {
  RingCurve curve = node_curve(node, ranks);
  if (!node.gather_bus.empty()) curve.bus = interpolate(node.gather_bus, ranks);
  return curve;
}

}  // namespace trivium::simulator
