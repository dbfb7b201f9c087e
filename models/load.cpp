#include "models/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "base/quote.h"

namespace trivium::models {
namespace {

namespace fs = std::filesystem;

/// A file of one of the two forms.
HuggingFaceModel load_file(const fs::path& path) {
  const nlohmann::json json = base::read_json_file(path);
  const bool hugging_face = json.is_object() && json.contains("model_type");
  if (!hugging_face) return {model_from_json(json, path.string()), {}, 0};
  HuggingFaceModel read = read_hugging_face(json, path.string());
  // Configurations seldom have a name of their own: that of the repository's folder, or of the file.
  const nlohmann::json own = json.value("_name_or_path", nlohmann::json());
  if (own.is_string() && !own.get<std::string>().empty()) return read;
  const fs::path full = fs::absolute(path);
  read.model.name = full.stem() == "config" ? full.parent_path().filename().string() : full.stem().string();
  return read;
}

[[noreturn]] void fail_unknown(const std::string& name, const std::vector<std::string>& known) {
  const std::string suggestion = base::nearest(name, known);
  const std::string advice = suggestion.empty() ? "give a shipped name (`trivium models` lists them) or a file"
                                                : fmt::format("did you mean \"{}\"?", suggestion);
  throw base::Failure(base::ErrorKind::kInput, fmt::format("unknown model {}; {}", base::quote(name), advice));
}

}  // namespace

std::vector<std::string> shipped_models() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(base::shipped_data("models"))) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

HuggingFaceModel load(const std::string& name_or_path) {
  const std::vector<std::string> shipped = shipped_models();
  if (std::binary_search(shipped.begin(), shipped.end(), name_or_path)) {
    return load_file(base::shipped_data("models") / (name_or_path + ".json"));
  }
  const fs::path path = name_or_path;
  std::error_code ignored;
  // A downloaded model is a folder whose config.json tells its shape.
  if (fs::is_directory(path, ignored) && fs::exists(path / "config.json", ignored))
    return load_file(path / "config.json");
  const bool looks_like_a_file = path.has_parent_path() || path.extension() == ".json" || fs::exists(path, ignored);
  if (looks_like_a_file) return load_file(path);
  fail_unknown(name_or_path, shipped);
}

}  // namespace

Model load_model(const std::string& name_or_path) { return load(name_or_path).model; }

std::vector<std::string> ignored_members(const std::string& name_or_path) { return load(name_or_path).ignored; }

std::int64_t modules_left_out(const std::string& name_or_path) { return load(name_or_path).modules; }

Model with_modules(Model model, std::int64_t modules) {
  if (modules == 0) {
    model.mtp.reset();
    return model;
  }
  if (model.positions == Positions::kLearned) {
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("{} has learned positions, which modules of multi-token prediction do not have",
                                    base::one_line(model.name)));
  }
  if (!model.mtp) model.mtp.emplace();
  model.mtp->depth = modules;
  return model;
}

}  // namespace trivium::models
