#include "gui/model/cluster_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "gui/model/alteration.h"
#include "gui/model/axis.h"
#include "hardware_profiles/cluster_text.h"
#include "hardware_profiles/load.h"
#include "hardware_profiles/quantity_text.h"
#include "program/ir/mesh.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::gui {
namespace {

constexpr const char* kEdited = "edited by hand";  // the source of a constant that the user typed

hardware::NodeGroup& group_of(Scenario& scenario, int group) {
  return scenario.cluster.groups.at(static_cast<std::size_t>(group));
}

/// The cluster stands in the file as a text where it can, else whole.
Scenario settled(Scenario scenario) {
  const int devices = scenario.cluster.devices();
  if (devices > hardware::kMostClusterDevices) {
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("{} devices; a cluster has at most {}", devices, hardware::kMostClusterDevices));
  }
  if (std::string text = text_of(scenario.cluster); !text.empty()) {
    scenario.cluster.name = text;
    scenario.file.cluster = std::move(text);
    return scenario;
  }
  hardware::Cluster cluster = named_by_its_nodes(std::move(scenario.cluster));
  return with_cluster(std::move(scenario), std::move(cluster));
}

}  // namespace

std::string text_of(const hardware::Cluster& cluster) {
  const std::vector<std::string> shipped = hardware::shipped_profiles();
  for (const hardware::NodeGroup& group : cluster.groups) {
    const bool known = std::find(shipped.begin(), shipped.end(), group.node.name) != shipped.end();
    if (!known || is_altered(group.node)) return "";
  }
  return nodes_text(cluster);
}

Scenario add_nodes(Scenario scenario, const std::string& profile, int count) {
  scenario.cluster.groups.push_back({hardware::load_node(profile), count});
  return settled(std::move(scenario));
}

Scenario set_count(Scenario scenario, int group, int count) {
  if (count > 0) {
    group_of(scenario, group).count = count;
  } else if (scenario.cluster.groups.size() == 1) {
    throw base::Failure(base::ErrorKind::kUsage, "a cluster needs one node at least");
  } else {
    scenario.cluster.groups.erase(scenario.cluster.groups.begin() + group);
  }
  return settled(std::move(scenario));
}

Scenario set_kind(Scenario scenario, int group, const std::string& profile) {
  group_of(scenario, group).node = hardware::load_node(profile);
  return settled(std::move(scenario));
}

Scenario duplicate_group(Scenario scenario, int group) {
  const hardware::NodeGroup copy = group_of(scenario, group);
  scenario.cluster.groups.insert(scenario.cluster.groups.begin() + group + 1, copy);
  return settled(std::move(scenario));
}

const char* words_of(NodeConstant constant) {
  switch (constant) {
    case NodeConstant::kDeviceMemory:
      return "memory of a device";
    case NodeConstant::kIntraBandwidth:
      return "link inside the node";
    case NodeConstant::kIntraLatency:
      return "its latency";
    case NodeConstant::kNetworkBandwidth:
      return "one network adapter";
    case NodeConstant::kNetworkLatency:
      return "network latency";
  }
  return "";
}

namespace {

/// Calls `text` with the constant, in its own unit.
template <class Text>
std::string with_constant(const hardware::Node& node, NodeConstant constant, Text text) {
  switch (constant) {
    case NodeConstant::kDeviceMemory:
      return text(node.device.memory);
    case NodeConstant::kIntraBandwidth:
      return text(node.intra.bandwidth);
    case NodeConstant::kIntraLatency:
      return text(node.intra.latency);
    case NodeConstant::kNetworkBandwidth:
      return text(node.network.bandwidth);
    case NodeConstant::kNetworkLatency:
      return text(node.network.latency);
  }
  return "";
}

}  // namespace

std::string text_of(const hardware::Node& node, NodeConstant constant) {
  return with_constant(node, constant, [](auto value) { return hardware::exact_text(value); });
}

std::string shown_text(const hardware::Node& node, NodeConstant constant) {
  constexpr std::size_t kMost = 11;  // characters: "1234.5 Gb/s"
  return with_micro_sign(with_constant(node, constant, [](auto value) {
    std::string exact = hardware::exact_text(value);
    return exact.size() > kMost ? base::to_text(value) : exact;
  }));
}

Scenario set_constant(Scenario scenario, int group, NodeConstant constant, const std::string& text) {
  hardware::Node& node = group_of(scenario, group).node;
  const auto positive = [&](auto parsed) {
    auto value = std::move(parsed).value_or_throw();
    if (!(value.value() > 0)) {
      throw base::Failure(base::ErrorKind::kInput, fmt::format("{}: must be above zero", words_of(constant)));
    }
    return value;
  };
  switch (constant) {
    case NodeConstant::kDeviceMemory:
      node.device.memory = positive(base::parse_bytes(text));
      node.sources["/device/memory"] = kEdited;
      break;
    case NodeConstant::kIntraBandwidth: {
      const base::BytesPerSecond old = node.intra.bandwidth;
      node.intra.bandwidth = positive(base::parse_bandwidth(text));
      node.sources["/intra/bandwidth"] = kEdited;
      // What was measured on the old link is taken to grow with it.
      for (auto& [ranks, bus] : node.allreduce_bus) bus = bus * (node.intra.bandwidth / old);
      break;
    }
    case NodeConstant::kIntraLatency:
      node.intra.latency = base::parse_seconds(text).value_or_throw();
      node.sources["/intra/latency"] = kEdited;
      break;
    case NodeConstant::kNetworkBandwidth:
      node.network.bandwidth = positive(base::parse_bandwidth(text));
      node.sources["/network/bandwidth"] = kEdited;
      break;
    case NodeConstant::kNetworkLatency:
      node.network.latency = base::parse_seconds(text).value_or_throw();
      node.sources["/network/latency"] = kEdited;
      break;
  }
  return settled(std::move(scenario));
}

Scenario swap_nodes(Scenario scenario, const std::vector<std::pair<int, int>>& pairs) {
  std::vector<int> kinds;  // group of every node
  for (std::size_t g = 0; g < scenario.cluster.groups.size(); ++g) {
    kinds.insert(kinds.end(), static_cast<std::size_t>(scenario.cluster.groups[g].count), static_cast<int>(g));
  }
  for (const auto& [a, b] : pairs)
    std::swap(kinds.at(static_cast<std::size_t>(a)), kinds.at(static_cast<std::size_t>(b)));
  std::vector<hardware::NodeGroup> groups;
  int last = -1;
  for (const int kind : kinds) {
    if (kind != last) groups.push_back({group_of(scenario, kind).node, 0});
    ++groups.back().count;
    last = kind;
  }
  scenario.cluster.groups = std::move(groups);
  return settled(std::move(scenario));
}

std::vector<int> devices_of_ranks(const program::Plan& plan, const hardware::Cluster& cluster) {
  std::vector<int> devices;
  if (plan.ranks() > cluster.devices() && !simulator::shares_cores(plan, cluster)) return devices;
  if (plan.stage_nodes.empty()) {
    for (int rank = 0; rank < plan.ranks(); ++rank) devices.push_back(rank % cluster.devices());
    return devices;
  }
  if (static_cast<int>(plan.stage_nodes.size()) != plan.pipeline || simulator::misplaced(plan, cluster)) return devices;
  std::vector<int> next;  // free device of every group
  for (int first = 0; const hardware::NodeGroup& group : cluster.groups) {
    next.push_back(first);
    first += group.count * group.node.devices;
  }
  for (const int group : plan.stage_nodes) {
    for (int i = 0; i < plan.ranks() / plan.pipeline; ++i) {
      devices.push_back(next[static_cast<std::size_t>(group)]++);
    }
  }
  return devices;
}

std::vector<int> nodes_of_stage(const program::Plan& plan, const hardware::Cluster& cluster, int stage) {
  const program::Mesh mesh(plan);
  const std::vector<int> devices = devices_of_ranks(plan, cluster);
  std::set<int> nodes;
  for (int rank = 0; rank < static_cast<int>(devices.size()); ++rank) {
    if (mesh.coordinates(rank).pipeline == stage)
      nodes.insert(cluster.node_index(devices[static_cast<std::size_t>(rank)]));
  }
  return {nodes.begin(), nodes.end()};
}

namespace {

/// The stage that has ranks on a node, the first of several; none where it is idle.
std::optional<int> stage_on(const program::Plan& plan, const hardware::Cluster& cluster, int node) {
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    const std::vector<int> nodes = nodes_of_stage(plan, cluster, stage);
    if (std::binary_search(nodes.begin(), nodes.end(), node)) return stage;
  }
  return std::nullopt;
}

/// Names the group of a node of the cluster for a stage; without room there, the stage that stands on the node goes
/// where this one was.
void name_group(program::Plan& plan, const hardware::Cluster& cluster, int stage, int node) {
  const std::optional<int> other = stage_on(plan, cluster, node);
  int group = 0;
  for (int end = cluster.groups[0].count; node >= end; end += cluster.groups.at(++group).count) {
  }
  int& named = plan.stage_nodes.at(static_cast<std::size_t>(stage));
  const int before = std::exchange(named, group);
  if (other && simulator::misplaced(plan, cluster)) plan.stage_nodes.at(static_cast<std::size_t>(*other)) = before;
}

}  // namespace

Scenario move_stage(Scenario scenario, int stage, int node) {
  program::Plan& plan = scenario.file.job.plan;
  const auto refuse = [&](const char* why) -> base::Failure {
    return {base::ErrorKind::kUsage, fmt::format("Stage {} cannot move to node {}: {}.", stage, node, why)};
  };
  if (node < 0 || node >= scenario.cluster.nodes()) throw refuse("the cluster has no such node");
  const std::vector<int> from = nodes_of_stage(plan, scenario.cluster, stage);
  if (from.empty()) throw refuse("the plan does not stand on this cluster");
  if (std::find(from.begin(), from.end(), node) != from.end()) throw refuse("it stands there");
  if (!plan.stage_nodes.empty()) {
    name_group(plan, scenario.cluster, stage, node);
    return scenario;
  }
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const int to = node + static_cast<int>(i);
    if (to >= scenario.cluster.nodes()) throw refuse("there are not enough nodes after it");
    if (std::find(from.begin(), from.end(), to) != from.end()) throw refuse("it would overlap itself");
    pairs.emplace_back(from[i], to);
  }
  return swap_nodes(std::move(scenario), pairs);
}

}  // namespace trivium::gui
