#include "hardware_profiles/profile_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/json_folder.h"
#include "base/quote.h"
#include "hardware_profiles/cluster_text.h"
#include "hardware_profiles/load.h"
#include "hardware_profiles/node_json.h"
#include "hardware_profiles/profile_names.h"

namespace trivium::hardware {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGenericCpu = "generic-cpu";  // stands in for a machine that was never measured

/// Where a kind of profiles lies, and how messages call the shipped ones.
struct Shelf {
  const char* word;
  fs::path shipped, own;
  const char* label;
};

Shelf shelf_of(ProfileKind kind) {
  const fs::path shipped = base::shipped_data("hardware_profiles"), own = base::user_data() / "profiles";
  if (kind == ProfileKind::kNode) return {"hardware profile", shipped, own, ""};
  return {"device", shipped / "devices", own / "devices", "devices/"};
}

StoredProfile read(const fs::path& path, std::string label) {
  return {base::read_json_file(path), std::move(label), fs::weakly_canonical(path).string()};
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// Files are relative to `folder`; a shipped name goes before one of the user's.
StoredProfile find(ProfileKind kind, const std::string& name, const fs::path& folder) {
  if (is_file(name)) {
    const fs::path path = folder / name;
    return read(path, path.string());
  }
  const Shelf shelf = shelf_of(kind);
  const auto shipped = [&](const std::string& which) {
    return read(shelf.shipped / (which + ".json"), shelf.label + which + ".json");
  };
  if (kind == ProfileKind::kNode && name == kThisMachine) {
    const std::string path = this_machine_path();
    return fs::exists(path) ? read(path, path) : shipped(kGenericCpu);
  }
  std::vector<std::string> known = base::names_in(shelf.shipped);
  if (has(known, name)) return shipped(name);
  if (fs::is_directory(shelf.own)) {
    const std::vector<std::string> own = base::names_in(shelf.own);
    if (has(own, name)) return read(shelf.own / (name + ".json"), (shelf.own / (name + ".json")).string());
    known.insert(known.end(), own.begin(), own.end());
  }
  if (kind == ProfileKind::kNode && !has(known, kThisMachine)) known.emplace_back(kThisMachine);
  throw base::Failure(base::ErrorKind::kInput, unknown_name(shelf.word, name, known));
}

}  // namespace

StoredProfile stored_profile(ProfileKind kind, const base::JsonReader& asked) {
  const std::string name = asked.text();
  try {
    return find(kind, name, fs::path(asked.file()).parent_path());
  } catch (const base::Failure& failure) {
    asked.fail(failure.error().message);
  }
}

BaseChain BaseChain::with(const StoredProfile& profile, const base::JsonReader& asked) const {
  BaseChain longer = *this;
  longer.labels_.push_back(base::quote(profile.label));
  longer.paths_.push_back(profile.path);
  const auto again = std::ranges::find(paths_, profile.path) - paths_.begin();
  if (again < std::ssize(paths_)) {
    asked.fail(fmt::format("bases go round in a circle: {}; give one of them no base",
                           fmt::join(longer.labels_.begin() + again, longer.labels_.end(), ", then ")));
  }
  return longer;
}

std::vector<std::string> shipped_profiles() { return base::names_in(base::shipped_data("hardware_profiles")); }

std::vector<std::string> user_profiles() {
  const fs::path folder = shelf_of(ProfileKind::kNode).own;
  return fs::is_directory(folder) ? base::names_in(folder) : std::vector<std::string>();
}

std::string this_machine_path() { return base::user_data() / "profiles" / "this-machine.json"; }

Node load_node(const std::string& name_or_path) {
  const StoredProfile stored = find(ProfileKind::kNode, name_or_path, "");
  return node_from_json(stored.json, stored.label);
}

nlohmann::ordered_json node_template(const std::string& name_or_path) {
  const StoredProfile stored = find(ProfileKind::kNode, name_or_path, "");
  const Node node = node_from_json(stored.json, stored.label);
  // References to files next to it are written out: the template is stored elsewhere.
  const nlohmann::json device = stored.json.value("device", nlohmann::json());
  const nlohmann::json named = device.is_object() ? device.value("base", nlohmann::json("")) : device;
  const bool stands_alone = !stored.json.contains("base") && named.is_string() && !is_file(named.get<std::string>());
  nlohmann::json members = stands_alone ? stored.json : to_json(node);
  members["name"] = "my-" + node.name;
  nlohmann::ordered_json ordered;
  for (const std::string_view name : kNodeMembers) {
    const std::string member(name);
    if (members.contains(member)) ordered[member] = members.at(member);
  }
  return ordered;
}

}  // namespace trivium::hardware
