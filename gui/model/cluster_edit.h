// Edits of a cluster: nodes come, go and change places; links and memory change.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gui/model/scenario.h"

namespace trivium::gui {

/// `count` more nodes of a profile at the end. Errors: Failure(kInput).
Scenario add_nodes(Scenario scenario, const std::string& profile, int count);
/// As many nodes of the group as told; none: the group goes. The last group cannot go: Failure(kUsage).
Scenario set_count(Scenario scenario, int group, int count);
/// The group's nodes become others of a profile. Errors: Failure(kInput).
Scenario set_kind(Scenario scenario, int group, const std::string& profile);
/// Inserts a copy of the group after it, as a group of its own.
Scenario duplicate_group(Scenario scenario, int group);

/// Constants of a node that can be edited as text with units.
enum class NodeConstant { kDeviceMemory, kIntraBandwidth, kIntraLatency, kNetworkBandwidth, kNetworkLatency };
constexpr int kNodeConstants = 5;
const char* words_of(NodeConstant constant);  ///< "memory of a device"
std::string text_of(const hardware::Node& node, NodeConstant constant);
/// As a field shows it: exact, or where that takes many digits (measured constants) rounded, with the sign of micro.
std::string shown_text(const hardware::Node& node, NodeConstant constant);
/// Errors: Failure(kInput) with the units that are accepted.
Scenario set_constant(Scenario scenario, int group, NodeConstant constant, const std::string& text);

/// Nodes `a` and `b` (in rank order) change places, so that the ranks of one run on the hardware of the other.
Scenario swap_nodes(Scenario scenario, const std::vector<std::pair<int, int>>& pairs);

/// Device of every rank of the plan, by rank: in order, or where `stage_nodes` puts the stages; ranks that take turns
/// on the cores of a machine go round them. Empty where the plan cannot be placed on the cluster.
std::vector<int> devices_of_ranks(const program::Plan& plan, const hardware::Cluster& cluster);

/// Nodes that the ranks of a stage stand on, ascending.
std::vector<int> nodes_of_stage(const program::Plan& plan, const hardware::Cluster& cluster, int stage);

/// The stage runs on the hardware at `node`. Where the plan names groups of nodes it names that node's, and a stage
/// that stands there takes the place of the one moved unless there is room for both; else the stage's nodes change
/// places with as many from there on. Errors: Failure(kUsage) where they stand there or do not fit, or the cluster has
/// no such node.
Scenario move_stage(Scenario scenario, int stage, int node);

/// "dgx-a100-80gb:16+dgx1-v100-32gb:4" where every node is a shipped one, unchanged; else empty.
std::string text_of(const hardware::Cluster& cluster);

}  // namespace trivium::gui
