// Which measured machine a node is, whatever its name.
#pragma once

#include <string>

#include "hardware_profiles/hardware.h"
#include "simulator/certainty/time_errors.h"

namespace trivium::simulator {

/// The name under which runs were measured on the node: its own, that of the nearest profile that it was made of, or
/// that of a shipped profile with the same constants (a copy under another name); else its own.
std::string measured_machine(const hardware::Node& node, const TimeErrors& errors);

}  // namespace trivium::simulator
