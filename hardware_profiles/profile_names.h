// Names of shipped files.
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"

namespace trivium::hardware {

/// `unknown KIND "NAME"; did you mean "…"?`, or the list of all when none is near.
std::string unknown_name(const std::string& kind, const std::string& name, const std::vector<std::string>& known);

/// Whether a value is the word "detect": to be asked from the machine when the profile is read.
bool is_detect(const base::JsonReader& value);

}  // namespace trivium::hardware
