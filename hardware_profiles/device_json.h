// The JSON form of a device: a file of devices/, or the `device` member of a node.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "edge/json_reader.h"
#include "hardware_profiles/hardware.h"
#include "hardware_profiles/sourced_reader.h"

namespace trivium::hardware {

/// A device and the citations of its constants, by pointer inside the device.
struct SourcedDevice {
  Device device;
  std::map<std::string, std::string> sources;
};

/// A shipped device of devices/. Errors: Failure(kInput) at `asked`, which holds the name, when there is no such
/// device.
SourcedDevice load_device(const std::string& name, const edge::JsonReader& asked);

/// The `device` member of a node: a name, a whole device, or `{"base": NAME, …}` with the members that differ from it.
/// `node` holds the member and its sources.
SourcedDevice read_device_of_node(const SourcedReader& node);

/// The whole device, without its sources.
nlohmann::json device_to_json(const Device& device);

}  // namespace trivium::hardware
