// The JSON form of a node, read at any place of a document.
#pragma once

#include "edge/json_reader.h"
#include "hardware_profiles/hardware.h"

namespace trivium::hardware {

inline constexpr const char* kNodeSchema = "trivium.hardware/1";

/// The node at `profile`. Errors: Failure(kInput), also when a constant has no source.
Node read_node(const edge::JsonReader& profile);

}  // namespace trivium::hardware
