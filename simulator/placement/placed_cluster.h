// Where a plan's ranks run: the cluster with its nodes in the order in which the ranks fill them.
#pragma once

#include <optional>

#include "hardware_profiles/hardware.h"
#include "program/lower/lower.h"

namespace trivium::simulator {

/// Whether the plan has more ranks (up to 64 times as many) than the one CPU node that the cluster is has cores: ranks
/// then take turns on them.
bool shares_cores(const program::Plan& plan, const hardware::Cluster& cluster);

/// A view of a cluster in which rank r of a plan runs on device r. Without `Plan::stage_nodes` that is the cluster
/// itself; with it, every run of stages on one group takes the next nodes of that group. Where ranks share cores there
/// is a device for every rank, with its part of the memory. The cluster given must outlive the view.
class PlacedCluster {
 public:
  /// Precondition: misplaced(plan, cluster) is nothing.
  PlacedCluster(const program::Plan& plan, const hardware::Cluster& cluster);
  const hardware::Cluster& get() const { return own_ ? *own_ : given_; }

 private:
  std::optional<hardware::Cluster> own_;
  const hardware::Cluster& given_;
};

/// Why the stages cannot lie on the groups that the plan names, or nothing: a group that is not there, a run of stages
/// that does not end with a node, more nodes than a group has. Precondition: program::check accepts the plan.
std::optional<program::Infeasible> misplaced(const program::Plan& plan, const hardware::Cluster& cluster);

}  // namespace trivium::simulator
