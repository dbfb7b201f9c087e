// Reading hardware profiles and clusters.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "hardware_profiles/hardware.h"

namespace trivium::hardware {

/// A cluster from its text: `NAME:N` (N nodes of a profile), `NAME` (one node), `A:16+B:16` (mixed), `this-machine`
/// (one node, devices = CPU cores, from the user's data folder or, before `trivium profile` ran, a generic CPU
/// profile), or `FILE.json` (a profile or a cluster). Errors: Failure(kInput) with a suggestion.
Cluster load_cluster(const std::string& text);

/// The cluster of a plan or record, which `where` is in a file: its text or its JSON form. Errors: Failure(kInput) that
/// names the place.
Cluster cluster_at(const nlohmann::json& json, const std::string& where);

/// A node profile: a shipped name, `this-machine`, a name in the user's data folder (profiles/NAME.json), or a file
/// (ends in .json or has a folder in it). Errors as above.
Node load_node(const std::string& name_or_path);

/// The profile of a node, named as above, to begin another one with: every member with its source, in the order in
/// which hardware_profiles/README.md has them, with the name `my-NAME` and without a base. Reads as it stands. Errors
/// as above.
nlohmann::ordered_json node_template(const std::string& name_or_path);

/// The JSON forms: `trivium.hardware/1` is a node, `trivium.cluster/1` is `{"name": TEXT, "groups": [{"node": NAME or
/// object, "count": N, "site": S}], "links": [{"between": [S, S], "bandwidth", "latency", "efficiency", "source"}]}`:
/// a group stands at the site that is its place in `groups` or that it says, links join sites. `where` is the file that
/// messages name. A cluster is also read from a node (one of it) and from a text for load_cluster. What is written has
/// its devices in full, so it does not depend on the shipped profiles. Errors: Failure(kInput) with the JSON pointer,
/// also when a constant has no source.
Node node_from_json(const nlohmann::json& json, const std::string& where);
nlohmann::json to_json(const Node& node);
Cluster cluster_from_json(const nlohmann::json& json, const std::string& where);
nlohmann::json to_json(const Cluster& cluster);

/// Names of the shipped profiles, sorted.
std::vector<std::string> shipped_profiles();

/// Names of the user's own profiles, sorted.
std::vector<std::string> user_profiles();

/// Where `trivium profile` keeps this machine's profile (DESIGN: under $XDG_DATA_HOME/trivium/profiles).
std::string this_machine_path();

}  // namespace trivium::hardware
