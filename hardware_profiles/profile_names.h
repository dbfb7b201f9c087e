// Names of shipped files, and the checks every profile file begins with.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json_reader.h"

namespace trivium::hardware {

/// Names of the JSON files of a folder without their extension, sorted.
std::vector<std::string> names_in(const std::filesystem::path& folder);

/// `unknown KIND "NAME"; did you mean "…"?`, or the list of all when none is near.
std::string unknown_name(const std::string& kind, const std::string& name, const std::vector<std::string>& known);

/// Errors: Failure(kInput) when the document's `schema` is missing or another one.
void check_schema(const base::JsonReader& document, const std::string& schema);

/// Whether a value is the word "detect": to be asked from the machine when the profile is read.
bool is_detect(const base::JsonReader& value);

}  // namespace trivium::hardware
