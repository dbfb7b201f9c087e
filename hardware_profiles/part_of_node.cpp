#include "hardware_profiles/part_of_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/quote.h"
#include "hardware_profiles/cluster_text.h"

namespace trivium::hardware {
namespace {

/// Tables by group size, and the source of every entry that goes.
template <class Table>
void drop_larger_groups(Table& table, const char* name, int devices, std::map<std::string, std::string>& sources) {
  for (auto entry = table.upper_bound(devices); entry != table.end(); entry = table.erase(entry)) {
    sources.erase(fmt::format("/{}/{}", name, entry->first));
  }
  if (table.empty()) sources.erase(fmt::format("/{}", name));
}

}  // namespace

Node with_devices(Node node, int devices) {
  const int whole = node.devices, of_host = node.devices_of_host();
  if (devices == whole) return node;
  const auto fail = [&](const std::string& why) {
    throw base::Failure(base::ErrorKind::kInput,
                        fmt::format("{} devices per node: {} {}", devices, base::quote(node.name), why));
  };
  if (devices < 1 || devices > whole) fail(fmt::format("has {}", whole));
  if (devices > of_host && devices % of_host != 0) {
    fail(fmt::format("has hosts of {}; take a multiple of that, or fewer", of_host));
  }
  node.devices = devices;
  node.whole_devices = whole;
  if (node.adapters > 0) node.adapters = std::max(1, node.adapters * devices / whole);
  node.devices_per_host_link = std::min(node.devices_per_host_link, devices);
  drop_larger_groups(node.allreduce_bus, "allreduce_bus", devices, node.sources);
  drop_larger_groups(node.gather_bus, "gather_bus", devices, node.sources);
  drop_larger_groups(node.allreduce_latency, "allreduce_latency", devices, node.sources);
  if (node.host_devices > 0) {
    const double share = static_cast<double>((devices + of_host - 1) / of_host) * of_host / whole;
    node.host_memory = node.host_memory * share;
    node.disk = node.disk * share;
    node.overhead_power = node.overhead_power * share;
    node.price = node.price * share;
    node.host_devices = std::min(of_host, devices);
  }
  node.sources["/devices"] = fmt::format("{} of the {} devices of {}", devices, whole, node.name);
  return node;
}

Cluster with_devices_per_node(Cluster cluster, int devices) {
  std::vector<ClusterTerm> terms;
  for (NodeGroup& group : cluster.groups) {
    group.node = with_devices(std::move(group.node), devices);
    terms.push_back({group.node.name, group.count, devices});
  }
  cluster.name = text_of(terms);
  return cluster;
}

std::string cluster_text(const Node& node, int count) {
  return text_of({{node.name, count, node.whole_devices > 0 ? node.devices : 0}});
}

}  // namespace trivium::hardware
