// Folders that hold one JSON file for each name.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trivium::base {

/// Names of the JSON files of a folder without their extension, sorted. Errors: std::filesystem::filesystem_error.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace trivium::base
