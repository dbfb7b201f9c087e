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

std::vector<Run> runs_of(const RanksToPlace& ranks) {
  std::vector<Run> runs;
  for (const int group : ranks.stage_nodes) {
    if (runs.empty() || runs.back().group != group) runs.push_back({group, 0});
    ++runs.back().stages;
  }
  return runs;
}

}  // namespace

RanksToPlace::RanksToPlace(const program::Plan& plan)
    : stages(plan.pipeline), per_stage(plan.tensor * plan.context * plan.data), stage_nodes(plan.stage_nodes) {}

RanksToPlace::RanksToPlace(const program::Program& program)
    : stages(program.mesh.pipeline()),
      per_stage(program.mesh.size() / program.mesh.pipeline()),
      stage_nodes(program.settings.stage_nodes) {}

bool shares_cores(const RanksToPlace& ranks, const hardware::Cluster& cluster) {
  if (!cluster.homogeneous() || cluster.nodes() != 1 || !ranks.stage_nodes.empty()) return false;
  const hardware::Node& node = cluster.groups.front().node;
  return node.topology == hardware::Topology::kSharedMemory && node.device.kind == hardware::DeviceKind::kCpu &&
         ranks.all() > node.devices && ranks.all() <= kMostRanksPerCore * node.devices;
}

PlacedCluster::PlacedCluster(const RanksToPlace& ranks, const hardware::Cluster& cluster) : given_(cluster) {
  if (shares_cores(ranks, cluster)) {
    own_ = cluster;
    hardware::Node& node = own_->groups.front().node;
    node.device.memory = node.device.memory * (static_cast<double>(node.devices) / ranks.all());
    node.devices = ranks.all();
  }
  if (ranks.stage_nodes.empty()) return;
  own_.emplace();
  own_->name = cluster.name;
  own_->links = cluster.links;
  for (const Run& run : runs_of(ranks)) {
    const hardware::NodeGroup& group = cluster.groups[static_cast<std::size_t>(run.group)];
    const hardware::Node& node = group.node;
    own_->groups.push_back({node, (run.stages * ranks.per_stage + node.devices - 1) / node.devices, group.site});
  }
}

std::optional<program::Infeasible> misplaced(const RanksToPlace& to_place, const hardware::Cluster& cluster) {
  const std::vector<Run> runs = runs_of(to_place);
  std::vector<int> taken(cluster.groups.size(), 0);  // nodes, by group
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto group = static_cast<std::size_t>(runs[i].group);
    if (group >= cluster.groups.size()) {
      return program::Infeasible{"stage-nodes-known", fmt::format("stage_nodes names group {}; {} has groups 0 to {}",
                                                                  group, cluster.name, cluster.groups.size() - 1)};
    }
    const hardware::Node& node = cluster.groups[group].node;
    const int ranks = runs[i].stages * to_place.per_stage;
    if (ranks % node.devices != 0 && i + 1 < runs.size()) {
      return program::Infeasible{"stage-nodes-fill-nodes",
                                 fmt::format("{} stages of {} ranks end inside a node of {} devices ({})",
                                             runs[i].stages, to_place.per_stage, node.devices, node.name)};
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
