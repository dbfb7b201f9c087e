// Files of models/families: what the keys of one family's configurations mean.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trivium::models {

/// A family of Hugging Face configurations (schema `trivium.family/1`), those it is based on merged in.
struct Family {
  std::string name;
  std::vector<std::string> types;  ///< values of model_type
  std::string where;               ///< its file, for errors
  nlohmann::json file;             ///< members of docs/reference/family-files.md
  std::string lacking;             ///< what Trivium lacks to read it; empty: it is read
};

/// Those of `folders`, a later folder's in the place of an earlier one's of that name, sorted by name. Errors:
/// Failure(kInput) for what is damaged, unknown, or based on what is not there.
std::vector<Family> read_families(std::span<const std::filesystem::path> folders);

/// Those shipped and the user's own (`families` in base::user_data()), read once.
const std::vector<Family>& families();
/// The family of that model_type; nullptr: none.
const Family* find_family(std::string_view type);

}  // namespace trivium::models
