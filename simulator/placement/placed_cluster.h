// Where a plan's ranks run: the cluster with its nodes in the order in which the ranks fill them.
#pragma once

#include <optional>
#include <span>

#include "hardware_profiles/hardware.h"
#include "program/lower/lower.h"

namespace trivium::simulator {

/// The ranks of a plan, or of the Program that it was lowered to, and the nodes that it names for them. A view.
struct RanksToPlace {
  RanksToPlace(const program::Plan& plan);        // NOLINT(google-explicit-constructor): every plan has ranks
  RanksToPlace(const program::Program& program);  // NOLINT(google-explicit-constructor)
  int stages = 1, per_stage = 1;
  std::span<const int> stage_nodes;  ///< group of the cluster, by stage; empty: nodes are filled in order
  int all() const { return stages * per_stage; }
};

/// Whether there are more ranks (up to 64 times as many) than the one CPU node that the cluster is has cores: ranks
/// then take turns on them.
bool shares_cores(const RanksToPlace& ranks, const hardware::Cluster& cluster);

/// A view of a cluster in which rank r of a plan runs on device r. Without `stage_nodes` that is the cluster
/// itself; with it, every run of stages on one group takes the next nodes of that group. Where ranks share cores there
/// is a device for every rank, with its part of the memory. The cluster given must outlive the view.
class PlacedCluster {
 public:
  /// Precondition: misplaced(ranks, cluster) is nothing.
  PlacedCluster(const RanksToPlace& ranks, const hardware::Cluster& cluster);
  const hardware::Cluster& get() const { return own_ ? *own_ : given_; }
  const hardware::Cluster& given() const { return given_; }

 private:
  std::optional<hardware::Cluster> own_;
  const hardware::Cluster& given_;
};

/// Why the stages cannot lie on the groups that the plan names, or nothing: a group that is not there, a run of stages
/// that does not end with a node, more nodes than a group has. Precondition: program::check accepts the plan.
std::optional<program::Infeasible> misplaced(const RanksToPlace& to_place, const hardware::Cluster& cluster);

}  // namespace trivium::simulator
