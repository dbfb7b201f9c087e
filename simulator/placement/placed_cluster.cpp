#include "simulator/placement/placed_cluster.h"

#include <fmt/format.h>

#include <vector>

namespace trivium::simulator {
namespace {

constexpr int kMostRanksPerCore = 64;  // beyond it a number of ranks is a slip

/// Neighbouring stages on nodes of one group.
struct Run {
  int group = 0;
  int stages = 0;
};

std::vector<Run> runs_of(const program::Plan& plan) {
  std::vector<Run> runs;
  for (const int group : plan.stage_nodes) {
    if (runs.empty() || runs.back().group != group) runs.push_back({group, 0});
    ++runs.back().stages;
  }
  return runs;
}

int ranks_a_stage(const program::Plan& plan) { return plan.tensor * plan.context * plan.data; }

}  // namespace

bool shares_cores(const program::Plan& plan, const hardware::Cluster& cluster) {
  if (!cluster.homogeneous() || cluster.nodes() != 1 || !plan.stage_nodes.empty()) return false;
  const hardware::Node& node = cluster.groups.front().node;
  return node.topology == hardware::Topology::kSharedMemory && node.device.kind == hardware::DeviceKind::kCpu &&
         plan.ranks() > node.devices && plan.ranks() <= kMostRanksPerCore * node.devices;
}

PlacedCluster::PlacedCluster(const program::Plan& plan, const hardware::Cluster& cluster) : given_(cluster) {
  if (shares_cores(plan, cluster)) {
    own_ = cluster;
    hardware::Node& node = own_->groups.front().node;
    node.device.memory = node.device.memory * (static_cast<double>(node.devices) / plan.ranks());
    node.devices = plan.ranks();
  }
  if (plan.stage_nodes.empty()) return;
  own_.emplace();
  own_->name = cluster.name;
  own_->links = cluster.links;
  for (const Run& run : runs_of(plan)) {
    const hardware::NodeGroup& group = cluster.groups[static_cast<std::size_t>(run.group)];
    const hardware::Node& node = group.node;
    own_->groups.push_back({node, (run.stages * ranks_a_stage(plan) + node.devices - 1) / node.devices, group.site});
  }
}

std::optional<program::Infeasible> misplaced(const program::Plan& plan, const hardware::Cluster& cluster) {
  const std::vector<Run> runs = runs_of(plan);
  std::vector<int> taken(cluster.groups.size(), 0);  // nodes, by group
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto group = static_cast<std::size_t>(runs[i].group);
    if (group >= cluster.groups.size()) {
      return program::Infeasible{"stage-nodes-known", fmt::format("stage_nodes names group {}; {} has groups 0 to {}",
                                                                  group, cluster.name, cluster.groups.size() - 1)};
    }
    const hardware::Node& node = cluster.groups[group].node;
    const int ranks = runs[i].stages * ranks_a_stage(plan);
    if (ranks % node.devices != 0 && i + 1 < runs.size()) {
      return program::Infeasible{"stage-nodes-fill-nodes",
                                 fmt::format("{} stages of {} ranks end inside a node of {} devices ({})",
                                             runs[i].stages, ranks_a_stage(plan), node.devices, node.name)};
    }
    taken[group] += (ranks + node.devices - 1) / node.devices;
    if (taken[group] > cluster.groups[group].count) {
      return program::Infeasible{"stage-nodes-enough",
                                 fmt::format("stage_nodes takes {} nodes of {}; there are {}", taken[group], node.name,
                                             cluster.groups[group].count)};
    }
  }
  return std::nullopt;
}

}  // namespace trivium::simulator
