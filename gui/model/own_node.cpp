#include "gui/model/own_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"
#include "calibration/fit/calibrate.h"
#include "hardware_profiles/load.h"

namespace trivium::gui {
namespace {

constexpr const char* kTyped = "typed by the user";

/// Members that a profile counts; all others are texts with units.
bool is_counted(const std::string& pointer) {
  return pointer == "/devices" || pointer == "/adapters" || pointer == "/fat_tree/leaf_nodes" ||
         pointer == "/host_devices" || pointer == "/fat_tree/oversubscription";
}

/// The lines from one that begins an output of one of the two tools to the next such line.
std::vector<std::string> outputs_in(const std::string& pasted) {
  std::vector<std::string> outputs(1);
  bool matrix = false;
  for (std::size_t at = 0; at < pasted.size();) {
    const std::size_t end = std::min(pasted.find('\n', at), pasted.size() - 1);
    const std::string line = pasted.substr(at, end + 1 - at);
    const std::size_t first = line.find_first_not_of(" \t\r\n");
    const bool row =
        first != std::string::npos && (line.compare(first, 3, "GPU") == 0 || line.compare(first, 3, "NIC") == 0);
    const bool test = first != std::string::npos && line[first] == '#';
    if ((row && !matrix && !outputs.back().empty()) || (test && matrix)) outputs.emplace_back();
    if (row || test) matrix = row;
    outputs.back() += line;
    at = end + 1;
  }
  return outputs;
}

calibration::Measurements measurements_in(const std::string& pasted) {
  namespace imports = calibration::imports;
  calibration::Measurements found;
  for (const std::string& output : outputs_in(pasted)) {
    const imports::FileText text(output);
    if (text.is_empty()) continue;
    if (imports::is_topology(text)) {
      found.topologies.push_back(imports::read_topology(output, "what was pasted"));
    } else if (imports::is_nccl_tests(text)) {
      found.collectives.push_back(imports::read_nccl_tests(output, "what was pasted"));
    } else {
      throw base::Failure(base::ErrorKind::kInput,
                          "what was pasted is neither the matrix of nvidia-smi topo -m nor output of nccl-tests");
    }
  }
  return found;
}

nlohmann::json value_of(const std::string& pointer, const std::string& text) {
  if (!is_counted(pointer)) return text;
  nlohmann::json number = nlohmann::json::parse(text, nullptr, false);
  if (!number.is_number()) {
    throw base::Failure(base::ErrorKind::kInput, fmt::format("{}: a number is needed, not \"{}\"", pointer, text));
  }
  return number;
}

}  // namespace

const std::vector<NodeField>& node_fields() {
  static const std::vector<NodeField> kFields{
      {"/devices", "Devices", "That NVLink or a bus joins: of an NVL72 domain all 72"},
      {"/host_devices", "Devices of one host", "Where a domain spans several hosts (NVL72: 4); none: all of the node"},
      {"/device/memory", "Memory of a device", "80 GiB, 141 GB"},
      {"/device/peak/bf16", "Peak in bf16", "Dense, of a device: 989 TFLOP/s"},
      {"/device/peak/fp16", "Peak in fp16", "Dense, of a device"},
      {"/device/peak/fp8", "Peak in fp8", "Dense, of a device; none: it has no fp8"},
      {"/device/memory_bandwidth", "Memory bandwidth", "Of a device: 3.35 TB/s"},
      {"/device/peak_power", "Power of a device", "At full load: 700 W"},
      {"/device/power_limit", "Its power limit",
       "That it is held to, as by nvidia-smi -pl: 500 W; none: its full power"},
      {"/intra/bandwidth", "Link inside the node", "One direction, of a device: 450 GB/s"},
      {"/intra/latency", "Its latency", "5 us"},
      {"/adapters", "Network adapters", "Of the node"},
      {"/network/bandwidth", "One network adapter", "One direction: 400 Gb/s"},
      {"/network/latency", "Network latency", "5 us"},
      {"/fat_tree/leaf_nodes", "Nodes under a leaf switch", "Of a fat tree or a rail; none: the network never blocks"},
      {"/fat_tree/oversubscription", "Oversubscription", "What nodes of a leaf send over what its uplinks carry: 2"},
      {"/host_memory", "Memory of the host", "2 TiB"},
      {"/host_link", "Link to the host", "Of a device, one direction: 50 GB/s"},
      {"/disk", "Local drives", "Together: 20 GB/s; none: nothing is offloaded there"},
      {"/overhead_power", "Power besides devices", "Of the node: 4600 W"},
      {"/price", "Price of the node", "63.30 $/h"}};
  return kFields;
}

std::string field_text(const hardware::Node& node, const std::string& pointer) {
  const nlohmann::json json = hardware::to_json(node);
  const nlohmann::json::json_pointer at(pointer);
  if (!json.contains(at)) return "";
  const nlohmann::json& value = json.at(at);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

MadeNode make_node(const OwnNode& own) {
  MadeNode made{hardware::load_node(own.base), {}};
  if (const calibration::Measurements measured = measurements_in(own.pasted); !measured.empty()) {
    calibration::Fit fit = calibration::calibrate(made.node, measured);
    made.node = std::move(fit.node);
    made.said = std::move(fit.report);
  }
  const base::BytesPerSecond link = made.node.intra.bandwidth;
  nlohmann::json json = hardware::to_json(made.node);
  json["name"] = own.name;
  for (const auto& [pointer, text] : own.typed) {
    const nlohmann::json::json_pointer at(pointer);
    if (text.empty()) {
      if (json.contains(at)) json.at(at.parent_pointer()).erase(at.back());
      json["sources"].erase(pointer);
      if (json.contains("fat_tree") && json["fat_tree"].empty()) json.erase("fat_tree");
      continue;
    }
    json[at] = value_of(pointer, text);
    json["sources"][pointer] = kTyped;
  }
  made.node = hardware::node_from_json(json, own.name);
  if (own.typed.contains("/intra/bandwidth") && link.value() > 0) {
    for (auto* buses : {&made.node.allreduce_bus, &made.node.gather_bus}) {
      for (auto& [ranks, bus] : *buses) bus = bus * (made.node.intra.bandwidth / link);
    }
  }
  return made;
}

void keep_node(const hardware::Node& node) {
  const bool is_name = !node.name.empty() && node.name.find_first_not_of(
                                                 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                 "0123456789-_.") == std::string::npos;
  if (!is_name || node.name.front() == '.' || node.name.ends_with(".json")) {
    throw base::Failure(base::ErrorKind::kUsage, "a name of letters, digits, - and _ is needed, as in my-h200");
  }
  const std::vector<std::string> shipped = hardware::shipped_profiles();
  if (node.name == "this-machine" || std::find(shipped.begin(), shipped.end(), node.name) != shipped.end()) {
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("{} is a shipped kind of node; take another name", node.name));
  }
  const auto path = base::user_data() / "profiles" / (node.name + ".json");
  base::write_file_atomically(path.string(), base::json_text(hardware::to_json(node), 2) + "\n");
}

}  // namespace trivium::gui
