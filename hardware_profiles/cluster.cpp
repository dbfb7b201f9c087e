// Clusters from their text and JSON forms.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/quote.h"
#include "base/sourced_reader.h"
#include "hardware_profiles/cluster_text.h"
#include "hardware_profiles/load.h"
#include "hardware_profiles/node_json.h"
#include "hardware_profiles/part_of_node.h"
#include "hardware_profiles/quantity_text.h"
#include "hardware_profiles/written_out.h"

namespace trivium::hardware {
namespace {

constexpr const char* kClusterSchema = "trivium.cluster/1";

/// What makes a cluster impossible, or empty. Checked once, for the text and the JSON form alike.
std::string complaint(const Cluster& cluster) {
  std::int64_t devices = 0;
  std::int64_t nodes = 0;
  for (const NodeGroup& group : cluster.groups) {
    devices += std::int64_t{group.count} * group.node.devices;
    nodes += group.count;
  }
  if (devices > kMostClusterDevices) {
    return fmt::format("{} devices; a cluster has at most {}", devices, kMostClusterDevices);
  }
  for (const NodeGroup& group : cluster.groups) {
    if (nodes > 1 && group.node.adapters == 0) {
      return fmt::format("{} has no network adapters in its profile, so it can only be used as one node",
                         base::quote(group.node.name));
    }
  }
  return "";
}

Cluster one_node(Node node) {
  Cluster cluster;
  cluster.name = node.name;
  cluster.groups.push_back({std::move(node), 1});
  return cluster;
}

/// A name in a document fails at its place there, not as if it had been typed.
Node read_group_node(const base::JsonReader& at) {
  if (!at.json().is_string()) return read_node(at);
  try {
    return load_node(at.text());
  } catch (const base::Failure& failure) {
    at.fail(failure.error().message);
  }
}

/// A site that stands in a link.
int read_site(const base::JsonReader& at, const Cluster& cluster) {
  const auto site = static_cast<int>(at.integer(0, kMostClusterDevices));
  const bool known = std::ranges::find(cluster.groups, site, &NodeGroup::site) != cluster.groups.end();
  if (!known)
    at.fail(fmt::format("no group stands at site {}; a group's site is its place in groups, or its \"site\"", site));
  return site;
}

SiteLink read_link(const base::JsonReader& at, const Cluster& cluster) {
  at.allow_only({"between", "bandwidth", "latency", "efficiency", "source"});
  demand_members(at, {"/between", "/bandwidth", "/latency", "/source"}, "");
  const std::vector<base::JsonReader> ends = at.at("between").elements();
  if (ends.size() != 2) at.at("between").fail("a link joins two sites; write them as [0, 1]");
  const int first = read_site(ends.front(), cluster), second = read_site(ends.back(), cluster);
  if (first == second) ends.back().fail("a link joins two sites, not one with itself");
  if (cluster.link_between(first, second) != nullptr) {
    at.at("between").fail("these sites have a link already; write all that joins them as one");
  }
  const base::JsonReader bandwidth = at.at("bandwidth"), source = at.at("source");
  SiteLink read;
  read.a = std::min(first, second);
  read.b = std::max(first, second);
  read.link.bandwidth = base::positive(bandwidth, bandwidth.bandwidth());
  read.link.latency = at.at("latency").seconds();
  if (const auto efficiency = at.find("efficiency")) {
    read.link.efficiency = base::number_within(*efficiency, kLeastEfficiency, 1);
  }
  read.source = source.text();
  if (read.source.empty()) source.fail("an empty source; say where the values come from");
  return read;
}

Cluster read_cluster(const base::JsonReader& document) {
  document.allow_only({"schema", "name", "groups", "links"});
  Cluster cluster;
  cluster.name = document.at("name").text();
  for (const base::JsonReader& group : document.at("groups").elements()) {
    group.allow_only({"node", "count", "site"});
    const auto count = static_cast<int>(group.at("count").integer(1, kMostClusterDevices));
    const auto site = group.find("site");
    cluster.groups.push_back(
        {read_group_node(group.at("node")), count,
         site ? static_cast<int>(site->integer(0, kMostClusterDevices)) : static_cast<int>(cluster.groups.size())});
  }
  if (cluster.groups.empty()) document.at("groups").fail("no nodes; a cluster needs one at least");
  if (const std::string what = complaint(cluster); !what.empty()) document.at("groups").fail(what);
  if (const auto links = document.find("links")) {
    for (const base::JsonReader& link : links->elements()) cluster.links.push_back(read_link(link, cluster));
  }
  return cluster;
}

/// A file whose name contains "+" is still a file; two files joined by "+" are not one.
bool is_one_file(const std::string& text) {
  if (!text.ends_with(".json")) return false;
  return text.find('+') == std::string::npos || std::filesystem::exists(text);
}

/// What a file holds that is nothing but the text "NAME:N".
Cluster named_in(const std::string& text, const std::string& where) {
  if (is_one_file(text)) {  // it could name itself
    throw base::Failure(base::ErrorKind::kInput, fmt::format("{}: names another file, {}; give that one",
                                                             base::one_line(where), base::quote(text)));
  }
  try {
    return load_cluster(text);
  } catch (const base::Failure& failure) {
    throw base::Failure(failure.error().kind, fmt::format("{}: {}", base::one_line(where), failure.what()));
  }
}

}  // namespace

Cluster load_cluster(const std::string& text) {
  if (is_one_file(text)) return cluster_from_json(base::read_json_file(text), text);
  Cluster cluster;
  cluster.name = text;
  for (const ClusterTerm& term : parse_cluster_text(text)) {
    Node node = load_node(term.node);
    if (term.devices > 0) node = with_devices(std::move(node), term.devices);
    cluster.groups.push_back({std::move(node), term.count});
  }
  if (const std::string what = complaint(cluster); !what.empty()) {
    throw base::Failure(base::ErrorKind::kInput, fmt::format("cluster {}: {}", base::quote(text), what));
  }
  return cluster;
}

Cluster cluster_from_json(const nlohmann::json& json, const std::string& where) {
  if (json.is_string()) return named_in(json.get<std::string>(), where);
  const base::JsonReader document = base::JsonReader(json, where);
  const base::JsonReader schema = document.at("schema");
  if (schema.text() == kNodeSchema) return one_node(read_node(document));
  if (schema.text() == kClusterSchema) return read_cluster(document);
  schema.fail(
      fmt::format("found {}; expected \"{}\" or \"{}\"", base::quote(schema.text()), kClusterSchema, kNodeSchema));
}

nlohmann::json to_json(const Cluster& cluster) {
  nlohmann::json json = {{"schema", kClusterSchema}, {"name", cluster.name}, {"groups", nlohmann::json::array()}};
  for (const NodeGroup& group : cluster.groups) {
    json["groups"].push_back({{"node", to_json(group.node)}, {"count", group.count}});
    if (!cluster.links.empty()) json["groups"].back()["site"] = group.site;
  }
  for (const SiteLink& link : cluster.links) {
    json["links"].push_back({{"between", {link.a, link.b}},
                             {"bandwidth", exact_text(link.link.bandwidth)},
                             {"latency", exact_text(link.link.latency)},
                             {"efficiency", link.link.efficiency},
                             {"source", link.source}});
  }
  return json;
}

Cluster cluster_at(const nlohmann::json& json, const std::string& where) {
  if (!json.is_string()) return cluster_from_json(json, where);
  try {
    return load_cluster(json.get<std::string>());
  } catch (const base::Failure& failure) {
    throw base::Failure(failure.error().kind, fmt::format("{}: {}", where, failure.error().message));
  }
}

}  // namespace trivium::hardware
