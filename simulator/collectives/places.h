// Where the groups of a plan lie on the nodes of a cluster.
#pragma once

#include <vector>

#include "hardware_profiles/hardware.h"
#include "program/ir/mesh.h"
#include "simulator/collectives/collective_cost.h"

namespace trivium::simulator {

/// The ways in which the groups that ranks of a stage belong to lie on the nodes, each once: one group may stay inside
/// a node where the next reaches over two. For groups that hold a whole replica one look is enough: they exchange a few
/// bytes once a step. `rank`: of the stage, on the kind of node whose devices share its adapters. On a cluster of one
/// kind a group lies as any other does that begins at the same place of a node.
std::vector<GroupPlacement> placements_of(const program::Mesh& mesh, const hardware::Cluster& cluster,
                                          program::Group group, int rank);

/// Ranks of a stage, ascending.
std::vector<int> ranks_of_stage(const program::Mesh& mesh, int stage);

/// Whether no two ranks that differ in their stage alone share a node. On clusters of one kind; false where it is not
/// known.
bool stages_on_other_nodes(const program::Mesh& mesh, const hardware::Cluster& cluster);

/// How the ranks of a stage reach those of another.
struct TransferPlacement {
  bool same_node = true;  ///< every pair shares a node
  int sharing = 0;        ///< ranks of the stage on the node of `rank`, which send at the same moment
  SiteShare between{};    ///< where pairs lie at two sites: all of the stage's that cross the link share it
  bool operator==(const TransferPlacement&) const = default;
};
TransferPlacement transfer_placement(const program::Mesh& mesh, const hardware::Cluster& cluster, int rank,
                                     int peer_stage);

}  // namespace trivium::simulator
