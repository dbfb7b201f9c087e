// The JSON form of a node, read at any place of a document.
#pragma once

#include <initializer_list>
#include <string_view>

#include "base/json_reader.h"
#include "hardware_profiles/hardware.h"

namespace trivium::hardware {

inline constexpr double kLeastEfficiency = 1e-3;  // of a link: zero would make a transfer infinite

inline constexpr const char* kNodeSchema = "trivium.hardware/1";

/// Members of a node in the order in which they are written.
inline const std::initializer_list<std::string_view> kNodeMembers{"schema",
                                                                  "name",
                                                                  "base",
                                                                  "device",
                                                                  "devices",
                                                                  "host_devices",
                                                                  "topology",
                                                                  "intra",
                                                                  "allreduce_bus",
                                                                  "gather_bus",
                                                                  "allreduce_latency",
                                                                  "core_sharing",
                                                                  "adapters",
                                                                  "network",
                                                                  "network_falloff",
                                                                  "fat_tree",
                                                                  "collective_skew",
                                                                  "asynchronous_lanes",
                                                                  "host_memory",
                                                                  "host_link",
                                                                  "devices_per_host_link",
                                                                  "disk",
                                                                  "overhead_power",
                                                                  "price",
                                                                  "stacks",
                                                                  "sources"};

/// The node at `profile`. Errors: Failure(kInput), also when a constant has no source.
Node read_node(const base::JsonReader& profile);

}  // namespace trivium::hardware
