#include "hardware_profiles/node_json.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/quote.h"
#include "base/sourced_reader.h"
#include "hardware_profiles/device_json.h"
#include "hardware_profiles/load.h"
#include "hardware_profiles/profile_names.h"
#include "hardware_profiles/profile_store.h"
#include "hardware_profiles/quantity_text.h"
#include "hardware_profiles/this_machine.h"

namespace trivium::hardware {
namespace {

constexpr int kMostDevices = 4096;   // of one node; beyond it the number is a slip
constexpr int kMostAdapters = 1024;  // of one node
constexpr int kMostLeafNodes = 4096;
constexpr double kMostOversubscription = 1000;
constexpr double kMostCoreSharing = 100;
constexpr const char* kComputeScale = "compute_scale";
constexpr const char* kNoAdapters =
    "the node has no network adapters; remove it (say null where a base has it) or set adapters";

const std::vector<std::string> kTopologyNames = {"nvswitch", "cube-mesh", "pcie",
                                                 "shared-memory"};  // order of Topology

Topology read_topology(const base::JsonReader& at) {
  const std::string name = at.one_of(kTopologyNames);
  std::size_t index = 0;
  while (kTopologyNames[index] != name) ++index;
  return static_cast<Topology>(index);
}

Link read_link(const base::SourcedReader& at) {
  at.plain().allow_only({"bandwidth", "latency", "efficiency"});
  const base::JsonReader bandwidth = at.constant("bandwidth");
  Link link;
  link.bandwidth = base::positive(bandwidth, bandwidth.bandwidth());
  link.latency = at.constant("latency").seconds();
  link.efficiency = base::number_within(at.constant("efficiency"), kLeastEfficiency, 1);
  return link;
}

nlohmann::json link_to_json(const Link& link) {
  return {{"bandwidth", exact_text(link.bandwidth)},
          {"latency", exact_text(link.latency)},
          {"efficiency", link.efficiency}};
}

/// A key of a table by group size: two devices or more, at most all of the node. Cores may be shared by more ranks.
int group_size(const std::string& key, const base::JsonReader& at, int devices, bool may_share = false) {
  int size = 0;
  if (may_share) devices = kMostDevices;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), size);
  if (error != std::errc() || end != key.data() + key.size() || size < 2 || size > devices) {
    at.fail("a group size must be from 2 to the " + std::to_string(devices) + " devices of the node, not " +
            base::quote(key));
  }
  return size;
}

void read_allreduce(const base::SourcedReader& at, Node& node) {
  if (at.has("allreduce_bus")) {
    for (const auto& [key, bus] : at.section("allreduce_bus").constants()) {
      node.allreduce_bus[group_size(key, bus, node.devices)] = base::positive(bus, bus.bandwidth());
    }
  }
  if (at.has("gather_bus")) {
    for (const auto& [key, bus] : at.section("gather_bus").constants()) {
      node.gather_bus[group_size(key, bus, node.devices)] = base::positive(bus, bus.bandwidth());
    }
  }
  if (at.has("allreduce_latency")) {
    for (const auto& [key, latency] : at.section("allreduce_latency").constants()) {
      node.allreduce_latency[group_size(key, latency, node.devices, node.topology == Topology::kSharedMemory)] =
          latency.seconds();
    }
  }
}

void read_core_sharing(const base::SourcedReader& at, Node& node) {
  if (!at.has("core_sharing")) return;
  if (node.topology != Topology::kSharedMemory) {
    at.plain().at("core_sharing").fail("only cores of one memory are shared by ranks; remove it");
  }
  for (const auto& [key, slowdown] : at.section("core_sharing").constants()) {
    std::int64_t bytes = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), bytes);
    if (error != std::errc() || end != key.data() + key.size() || bytes < 1) {
      slowdown.fail("must be named by bytes per core, 1 or more, not " + base::quote(key));
    }
    node.core_sharing[bytes] = base::number_within(slowdown, 0, kMostCoreSharing);
  }
}

void read_fat_tree(const base::SourcedReader& at, Node& node) {
  if (!at.has("fat_tree")) return;
  if (node.adapters == 0) at.plain().at("fat_tree").fail(kNoAdapters);
  const base::SourcedReader tree = at.section("fat_tree");
  tree.plain().allow_only({"leaf_nodes", "oversubscription"});
  node.leaf_nodes = static_cast<int>(tree.constant("leaf_nodes").integer(1, kMostLeafNodes));
  node.oversubscription = base::number_within(tree.constant("oversubscription"), 1, kMostOversubscription);
}

int read_devices(const base::JsonReader& at) {
  if (is_detect(at)) return machine_cores();
  return static_cast<int>(at.integer(1, kMostDevices));
}

int read_host_devices(const base::SourcedReader& at, int devices) {
  if (!at.has("host_devices")) return 0;
  const base::JsonReader value = at.constant("host_devices");
  const auto count = static_cast<int>(value.integer(1, devices));
  if (devices % count != 0) value.fail("must divide the devices of the node");
  return count;
}

base::Bytes read_host_memory(const base::JsonReader& at) {
  if (is_detect(at)) return machine_memory();
  return base::positive(at, at.bytes());
}

/// What a whole node has to have. `own`: the node before its base was filled in, which has a name of its own.
void demand_node(const base::JsonReader& own, const base::JsonReader& whole) {
  nlohmann::json named = whole.json();
  if (!own.has("name")) named.erase("name");
  std::vector<std::string> members = {"/name", "/device"};
  const auto add_link = [&](const std::string& link) {
    members.push_back(link);
    for (const char* member : {"/bandwidth", "/latency", "/efficiency"}) members.push_back(link + member);
  };
  for (const std::string& member : device_members()) members.push_back("/device" + member);
  for (const char* member : {"/devices", "/topology"}) members.emplace_back(member);
  add_link("/intra");
  members.emplace_back("/adapters");
  const auto adapters = whole.find("adapters");
  if (adapters && adapters->json() != 0) add_link("/network");
  for (const char* member :
       {"/collective_skew", "/asynchronous_lanes", "/host_memory", "/host_link", "/overhead_power", "/price"}) {
    members.emplace_back(member);
  }
  demand_members(base::JsonReader(named, whole.file(), whole.pointer()), members);
}

/// The node that `whole` says; `own` is the profile as it stands in its file.
Node read_whole(const base::JsonReader& own, const WrittenOut& written) {
  const base::JsonReader profile(written.json, own.file(), own.pointer());
  demand_node(own, profile);
  const base::Sources sources = base::Sources::of(profile, written.inherited);
  base::demand_sources(
      profile, sources,
      {"/name", "/topology", "/asynchronous_lanes", "/device/name", "/device/kind", "/device/flash_attention"});
  const base::SourcedReader at(profile, sources);
  Node node;
  node.name = profile.at("name").text();
  node.bases = written.bases;
  node.device = read_device(at.section("device"));
  node.sources = sources.entries();
  node.devices = read_devices(at.constant("devices"));
  node.host_devices = read_host_devices(at, node.devices);
  node.topology = read_topology(profile.at("topology"));
  node.intra = read_link(at.section("intra"));
  read_allreduce(at, node);
  node.adapters = static_cast<int>(at.constant("adapters").integer(0, kMostAdapters));
  if (node.adapters > 0) {
    node.network = read_link(at.section("network"));
  } else if (at.has("network")) {
    profile.at("network").fail(kNoAdapters);
  }
  if (at.has("network_falloff")) {
    if (node.adapters == 0) profile.at("network_falloff").fail(kNoAdapters);
    node.network_falloff = base::number_within(at.constant("network_falloff"), 0, 1);
  }
  read_fat_tree(at, node);
  read_core_sharing(at, node);
  node.collective_skew = at.constant("collective_skew").seconds();
  node.asynchronous_lanes = profile.at("asynchronous_lanes").boolean();
  node.host_memory = read_host_memory(at.constant("host_memory"));
  const base::JsonReader host_link = at.constant("host_link");
  node.host_link = base::positive(host_link, host_link.bandwidth());
  if (at.has("devices_per_host_link")) {
    node.devices_per_host_link = static_cast<int>(at.constant("devices_per_host_link").integer(1, node.devices));
  }
  if (at.has("disk")) {
    const base::JsonReader disk = at.constant("disk");
    node.disk = base::positive(disk, disk.bandwidth());
  }
  if (at.has("stacks")) {
    for (const auto& [stack, variant] : at.constant("stacks").members()) node.stacks[stack] = variant.text();
  }
  node.overhead_power = at.constant("overhead_power").watts();
  node.price = at.constant("price").price();
  return node;
}

/// The node with its base and its device written out. `chain`: the files on the way to it. Another device than the
/// base's takes nothing of the base's but its compute_scale, where it has none: clocks under load are the machine's,
/// and 1.0 would be a guess that no machine bears out.
WrittenOut written_out(const base::JsonReader& profile, const BaseChain& chain);

/// Gives a node whose device is told elsewhere, in a file that says nothing of clocks under load, those of data sheets.
void default_compute_scale(WrittenOut& node) {
  if (node.json.at("device").contains(kComputeScale)) return;
  node.json["device"][kComputeScale] = 1.0;
  node.json["sources"][std::string("/device/") + kComputeScale] =
      "definition: the reference against which clusters are scaled";
}

/// The base, found to be whole.
WrittenOut load_base(const base::JsonReader& asked, const BaseChain& chain) {
  const StoredProfile stored = stored_profile(ProfileKind::kNode, asked);
  const base::JsonReader file(stored.json, stored.label);
  WrittenOut base = written_out(file, chain.with(stored, asked));
  read_whole(file, base);
  return base;
}

WrittenOut written_out(const base::JsonReader& profile, const BaseChain& chain) {
  base::check_schema(profile, kNodeSchema);
  profile.allow_only(kNodeMembers);
  base::Sources::of(profile);
  WrittenOut node{profile.json(), {}, {}};
  const auto device = device_elsewhere(profile);
  if (device) put_device(node, *device);
  const auto base = profile.find("base");
  if (!base) {
    if (device) default_compute_scale(node);
    return node;
  }
  WrittenOut below = load_base(*base, chain);
  if (device) below.json["device"] = {{kComputeScale, below.json.at("device").at(kComputeScale)}};
  const auto of_device = std::move(node.inherited);
  node.json.erase("base");
  node = over_base(std::move(node.json), below, base->text());
  node.inherited.insert(of_device.begin(), of_device.end());
  return node;
}

}  // namespace

Node read_node(const base::JsonReader& profile) { return read_whole(profile, written_out(profile, {})); }

Node node_from_json(const nlohmann::json& json, const std::string& where) {
  return read_node(base::JsonReader(json, where));
}

nlohmann::json to_json(const Node& node) {
  nlohmann::json json = {{"schema", kNodeSchema},
                         {"name", node.name},
                         {"device", device_to_json(node.device)},
                         {"devices", node.devices},
                         {"topology", kTopologyNames[static_cast<std::size_t>(node.topology)]},
                         {"intra", link_to_json(node.intra)},
                         {"adapters", node.adapters},
                         {"collective_skew", exact_text(node.collective_skew)},
                         {"asynchronous_lanes", node.asynchronous_lanes},
                         {"host_memory", exact_text(node.host_memory)},
                         {"host_link", exact_text(node.host_link)},
                         {"overhead_power", exact_text(node.overhead_power)},
                         {"price", exact_text(node.price)},
                         {"sources", node.sources}};
  for (const auto& [size, bus] : node.allreduce_bus) json["allreduce_bus"][std::to_string(size)] = exact_text(bus);
  for (const auto& [size, bus] : node.gather_bus) json["gather_bus"][std::to_string(size)] = exact_text(bus);
  for (const auto& [size, latency] : node.allreduce_latency) {
    json["allreduce_latency"][std::to_string(size)] = exact_text(latency);
  }
  for (const auto& [bytes, slowdown] : node.core_sharing) json["core_sharing"][std::to_string(bytes)] = slowdown;
  if (node.devices_per_host_link > 1) json["devices_per_host_link"] = node.devices_per_host_link;
  if (node.disk.value() > 0) json["disk"] = exact_text(node.disk);
  if (!node.stacks.empty()) json["stacks"] = node.stacks;
  if (node.adapters > 0) json["network"] = link_to_json(node.network);
  if (node.host_devices > 0) json["host_devices"] = node.host_devices;
  if (node.network_falloff > 0) json["network_falloff"] = node.network_falloff;
  if (node.leaf_nodes > 0) {
    json["fat_tree"] = {{"leaf_nodes", node.leaf_nodes}, {"oversubscription", node.oversubscription}};
  }
  return json;
}

}  // namespace trivium::hardware
