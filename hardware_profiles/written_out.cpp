#include "hardware_profiles/written_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>

namespace trivium::hardware {
namespace {

using nlohmann::json;

constexpr std::string_view kDevice = "/device";

/// Objects that are one measurement: half of a table from another node would be none.
constexpr std::array<std::string_view, 6> kTables = {"allreduce_bus", "gather_bus", "allreduce_latency",
                                                     "core_sharing",  "peak",       "op_rates"};

void join(json& base, const json& own) {
  for (const auto& [key, value] : own.items()) {
    const bool table = std::ranges::find(kTables, key) != kTables.end();
    if (value.is_null()) {
      base.erase(key);
    } else if (value.is_object() && base.contains(key) && base.at(key).is_object() && !table) {
      join(base.at(key), value);
    } else {
      base[key] = value;
    }
  }
}

/// Of tables by group size that a profile inherits, the groups that its fewer devices cannot make up.
void drop_larger_groups(json& whole, const json& own) {
  const auto devices = own.find("devices");
  if (devices == own.end() || !devices->is_number_integer()) return;
  for (const char* name : {"allreduce_bus", "gather_bus", "allreduce_latency"}) {
    if (own.contains(name) || !whole.contains(name) || !whole.at(name).is_object()) continue;
    json kept = json::object();
    for (const auto& [size, value] : whole.at(name).items()) {
      if (std::atoi(size.c_str()) <= devices->get<std::int64_t>()) kept[size] = value;
    }
    if (kept.empty()) {
      whole.erase(name);
    } else {
      whole[name] = std::move(kept);
    }
  }
}

bool lies_under(std::string_view pointer, std::string_view above) {
  return pointer.starts_with(above) && (pointer.size() == above.size() || pointer[above.size()] == '/');
}

/// Pointers of all values that are no objects, but for the schema and citations.
std::vector<std::string> values_of(json profile) {
  profile.erase("schema");
  profile.erase("sources");
  std::vector<std::string> pointers;
  const json flat = profile.flatten();
  for (const auto& [pointer, value] : flat.items()) pointers.push_back(pointer);
  return pointers;
}

json sources_of(const json& profile) {
  const auto sources = profile.find("sources");
  return sources == profile.end() ? json::object() : *sources;
}

/// Enters a citation of all `values` under `pointer` as one of those alone that are `meant`.
void cite(json& sources, const std::vector<std::string>& values, const std::string& pointer,
          const std::string& citation, const std::function<bool(const std::string&)>& meant) {
  std::vector<std::string> under;
  std::ranges::copy_if(values, std::back_inserter(under), [&](const auto& v) { return lies_under(v, pointer); });
  if (std::ranges::all_of(under, meant)) {
    if (!under.empty()) sources[pointer] = citation;
    return;
  }
  for (const std::string& value : under) {
    if (meant(value)) sources[value] = citation;
  }
}

}  // namespace

WrittenOut over_base(json own, const WrittenOut& base, const std::string& name) {
  const json own_sources = sources_of(own);
  own.erase("sources");
  WrittenOut whole;
  whole.json = base.json;
  join(whole.json, own);
  if (whole.json.value("topology", "") != "shared-memory") drop_larger_groups(whole.json, own);
  const std::vector<std::string> values = values_of(whole.json);
  const auto is_own = [&](const std::string& value) { return own.contains(json::json_pointer(value)); };
  for (const std::string& value : values) {
    if (is_own(value)) continue;
    const auto before = base.inherited.find(value);
    whole.inherited[value] = before == base.inherited.end() ? name : before->second;
  }
  json sources = json::object();
  const json base_sources = sources_of(base.json);
  for (const auto& [pointer, citation] : base_sources.items()) {
    cite(sources, values, pointer, fmt::format("base {}: {}", name, citation.get<std::string>()),
         [&](const std::string& value) { return !is_own(value); });
  }
  for (const auto& [pointer, citation] : own_sources.items()) {
    cite(sources, values, pointer, citation.get<std::string>(), is_own);
  }
  whole.json["sources"] = std::move(sources);
  whole.bases.push_back(name);
  whole.bases.insert(whole.bases.end(), base.bases.begin(), base.bases.end());
  return whole;
}

json device_sources(const json& node) {
  json sources = json::object();
  const json all = sources_of(node);
  for (const auto& [pointer, citation] : all.items()) {
    if (lies_under(pointer, kDevice)) sources[pointer.substr(kDevice.size())] = citation;
  }
  return sources;
}

void put_device(WrittenOut& node, const WrittenOut& device) {
  json sources = json::object();
  const json of_node = sources_of(node.json), of_device = sources_of(device.json);
  for (const auto& [pointer, citation] : of_node.items()) {
    if (!lies_under(pointer, kDevice)) sources[pointer] = citation;
  }
  for (const auto& [pointer, citation] : of_device.items()) {
    sources[std::string(kDevice) + pointer] = citation;
  }
  for (const auto& [pointer, base] : device.inherited) node.inherited[std::string(kDevice) + pointer] = base;
  node.json["device"] = device.json;
  node.json["device"].erase("sources");
  node.json["device"].erase("schema");
  node.json["sources"] = std::move(sources);
}

void demand_members(const base::JsonReader& whole, const std::vector<std::string>& members, std::string_view besides) {
  std::vector<std::string> missing;
  for (const std::string& member : members) {
    const bool counted = std::ranges::any_of(missing, [&](const auto& m) { return lies_under(member, m); });
    if (!counted && !whole.json().contains(json::json_pointer(member))) missing.push_back(member);
  }
  if (missing.empty()) return;
  whole.fail(
      fmt::format("missing {}; add {}{}", fmt::join(missing, ", "), missing.size() == 1 ? "it" : "them", besides));
}

}  // namespace trivium::hardware
