#include "simulator/analytic/bus_load.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/seconds.h"
#include "simulator/collectives/network.h"
#include "simulator/collectives/network_bytes.h"
#include "simulator/collectives/places.h"

namespace trivium::simulator {
namespace {

using base::kPsPerSecond;
using program::OpKind;

// Rates at which links are shared are found to so many digits.
constexpr double kExact = 1 - 1e-6;

// A device that drives the adapters next to it takes no more of its bus than they carry.
double near_adapters(const hardware::Node& node) { return network_share(node, 1, 1).value(); }

}  // namespace

BusLoad::BusLoad(const program::Program& program, const hardware::Cluster& cluster, int stage)
    : program_(program), cluster_(cluster), places_(program.mesh, cluster, program.mesh.rank({0, 0, 0, stage})) {
  if (!cluster.homogeneous()) return;
  const hardware::Node& node = cluster.groups.front().node;
  if (!node.asynchronous_lanes || node.topology == hardware::Topology::kPcie) return;
  capacity_ = std::max(node.host_link.value(), near_adapters(node));
}

// As the links are used by flows (simulator/replay/routes.cpp): a flow never asks for more than its group's part of the
// adapters, and a group's ranks on a node drive their own buses, each with its part.
double BusLoad::carried(OpKind kind, program::Group group_kind, double bytes, double seconds) {
  if (program::is_copy(kind)) return bytes;
  if (kind == OpKind::kSend) return stages_on_other_nodes(program_.mesh, cluster_) ? bytes : 0;
  const hardware::Node& node = cluster_.groups.front().node;
  const int devices = std::min(node.devices, program_.mesh.size());
  double least = std::numeric_limits<double>::infinity();
  for (const GroupPlacement& group : places_.of(group_kind)) {
    if (group.nodes < 2) return 0;
    const int here = group.ranks_per_node;
    const double wire = wire_bytes(program_.mesh, kind, group_kind, bytes);
    double limit = network_share(node, here, std::max(1, devices / here)).value(), part = 1.0 / here;
    if (kind == OpKind::kAllToAll) {
      part = static_cast<double>(group.ranks - here) / (group.ranks - 1);
      limit = std::min(limit, limit / (here * part));
    }
    least = std::min(least, std::min(wire, limit * seconds) * part);
  }
  return std::isfinite(least) ? least : 0;
}

std::int64_t BusLoad::of(OpKind kind, program::Group group, double bytes, std::int64_t ps) {
  if (capacity_ <= 0 || ps <= 0 || (!program::is_communication(kind) && !program::is_copy(kind))) return 0;
  const double sent = carried(kind, group, bytes, static_cast<double>(ps) / kPsPerSecond);
  return static_cast<std::int64_t>(sent / capacity_ * kPsPerSecond * kExact);
}

}  // namespace trivium::simulator
