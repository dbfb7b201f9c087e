// Orders in which the dimensions of a split fill the devices of a cluster.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hardware_profiles/hardware.h"
#include "program/plan/plan.h"

namespace trivium::planner {

/// Every order of the dimensions that are above 1 (tensor, context, data, pipeline), each in the first way to write it,
/// the usual one first.
std::vector<std::string> placements_of(const program::Plan& split);

/// Which coordinates of a rank tell its place on a node, which tell the node under a leaf switch, and which the switch:
/// pairs of a dimension (0 tensor … 3 pipeline) and how many of its values, sorted, by level.
using Seating = std::vector<std::vector<std::pair<int, int>>>;

/// Of a placement. Two placements of a split with the same seating put the same ranks together on nodes and under leaf
/// switches, so every collective and transfer of theirs crosses the same links, and they take the same time. Where
/// nodes end in the middle of a dimension's values, the seating is the order itself and nobody else's.
/// Precondition: the cluster is homogeneous, and no links join its nodes by groups.
Seating seating_of(const program::Plan& split, const std::string& placement, const hardware::Cluster& cluster);

}  // namespace trivium::planner
