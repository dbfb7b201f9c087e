// Where profiles are kept: the shipped folder, the user's data folder, and files named by the user.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "edge/files.h"
#include "edge/json_reader.h"
#include "hardware_profiles/cluster_text.h"
#include "hardware_profiles/load.h"
#include "hardware_profiles/profile_names.h"

namespace trivium::hardware {
namespace {

constexpr const char* kGenericCpu = "generic-cpu";  // stands in for a machine that was never measured

Node load_shipped(const std::string& name) {
  const auto path = edge::shipped_data("hardware_profiles") / (name + ".json");
  return node_from_json(edge::read_json_file(path), name + ".json");
}

}  // namespace

std::vector<std::string> shipped_profiles() { return names_in(edge::shipped_data("hardware_profiles")); }

std::string this_machine_path() { return edge::user_data() / "profiles" / "this-machine.json"; }

Node load_node(const std::string& name_or_path) {
  if (is_file(name_or_path)) return node_from_json(edge::read_json_file(name_or_path), name_or_path);
  if (name_or_path == kThisMachine) {
    const std::string path = this_machine_path();
    if (!std::filesystem::exists(path)) return load_shipped(kGenericCpu);
    return node_from_json(edge::read_json_file(path), path);
  }
  std::vector<std::string> known = shipped_profiles();
  if (std::binary_search(known.begin(), known.end(), name_or_path)) return load_shipped(name_or_path);
  known.push_back(kThisMachine);
  throw edge::Failure(edge::ErrorKind::kInput, unknown_name("hardware profile", name_or_path, known));
}

}  // namespace trivium::hardware
