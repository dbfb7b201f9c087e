// Profiles that say only how they differ from another one, written out.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.h"

namespace trivium::hardware {

/// A profile with the members of its base filled in.
struct WrittenOut {
  nlohmann::json json;                           ///< without `base`; its `sources` are also those of the base
  std::map<std::string, std::string> inherited;  ///< pointer of a value that is no object -> base that it comes from
  std::vector<std::string> bases;                ///< the base, its base, and so on
};

/// `own` over `base`, which was named `name`: objects are joined member by member, tables (by group size, arithmetic or
/// op) and all else are replaced, null removes a member. A citation of the base stands for what is still the base's and
/// says so ("base NAME: …"), one of `own` for what `own` says: neither covers the other's constants.
WrittenOut over_base(nlohmann::json own, const WrittenOut& base, const std::string& name);

/// Replaces the member `device` of a node by a device written out, whose citations come to stand among the node's;
/// those that the node has below "/device" go.
void put_device(WrittenOut& node, const WrittenOut& device);

/// Citations of `sources` below "/device", as a device of its own would have them.
nlohmann::json device_sources(const nlohmann::json& node);

/// What else a profile may do, where it lacks members.
inline constexpr std::string_view kOrABase = R"(, or name a profile as "base" (trivium profiles lists them))";

/// Errors: Failure(kInput) at `whole` that names every one of `members` (JSON pointers) that it lacks, and what can be
/// done other than adding them.
void demand_members(const base::JsonReader& whole, const std::vector<std::string>& members,
                    std::string_view besides = kOrABase);

}  // namespace trivium::hardware
