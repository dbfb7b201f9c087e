// The JSON form of a device: a file of devices/, or the `device` member of a node.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "base/sourced_reader.h"
#include "hardware_profiles/hardware.h"
#include "hardware_profiles/written_out.h"

namespace trivium::hardware {

/// The device that the member `device` of a node means: a name, a file, or `{"base": NAME, …}` with the members that
/// differ from it; nothing where it is whole as it stands. Its citations are relative to the device. Errors:
/// Failure(kInput), at its place in the file that is wrong.
std::optional<WrittenOut> device_elsewhere(const base::JsonReader& node);

/// JSON pointers, relative to a device, of all members that a whole one has to have.
const std::vector<std::string>& device_members();

/// The whole device at `from`.
Device read_device(const base::SourcedReader& from);

/// The whole device, without its sources.
nlohmann::json device_to_json(const Device& device);

}  // namespace trivium::hardware
