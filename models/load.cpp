#include "models/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json_folder.h"
#include "base/json_reader.h"
#include "base/quote.h"

namespace trivium::models {
namespace {

namespace fs = std::filesystem;

/// Python's json writes Infinity and NaN, which JSON has not: here texts, so that what needs a number refuses them.
std::string with_texts_for_infinities(const std::string& text) {
  std::string kept;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = std::string_view(text).substr(at);
    if (quoted && rest.starts_with('\\')) {
      kept += rest.substr(0, 2), ++at;
      continue;
    }
    if (rest.starts_with('"')) quoted = !quoted;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (quoted || !rest.starts_with(word)) continue;
      kept += fmt::format("\"{}\"", word);
      at += word.size();
      break;
    }
    if (at < text.size()) kept += text[at];
  }
  return kept;
}

/// A file of one of the two forms.
HuggingFaceModel load_file(const fs::path& path) {
  const std::string text = with_texts_for_infinities(base::read_file(path));
  const nlohmann::json json = base::parse_json(text, path.string());
  const bool hugging_face = json.is_object() && json.contains("model_type");
  if (!hugging_face) return {model_from_json(json, path.string()), {}, 0, {}};
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

std::string family_of(const std::string& shipped) {
  std::string family;
  for (std::size_t at = 0; at < shipped.size();) {
    const std::size_t end = std::min(shipped.find('-', at), shipped.size());
    const std::string word = shipped.substr(at, end - at);
    const bool sized = std::isdigit(static_cast<unsigned char>(word.front())) != 0 && word.size() > 1;
    if (sized && !family.empty()) break;
    family += (family.empty() ? "" : "-") + word;
    at = end + 1;
  }
  return family;
}

std::vector<std::string> shipped_models() { return base::names_in(base::shipped_data("models")); }

namespace {

/// Letters and digits: "llama3170b" of "Llama-3.1-70B" and of "llama3.1-70b".
std::string letters_and_digits(const std::string& name) {
  std::string kept;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      kept += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return kept;
}

/// The shipped model of a repository of Hugging Face: by models/names/hugging_face.json, or as the repository is
/// called after its owner, "-Instruct" and the like left out; empty: none.
std::string shipped_of_repository(const std::string& repository, const std::vector<std::string>& shipped) {
  const nlohmann::json table = base::read_json_file(base::shipped_data("models") / "names" / "hugging_face.json");
  const std::string wanted = letters_and_digits(repository);
  for (const auto& [name, one] : table.at("names").items()) {
    if (letters_and_digits(name) == wanted) return one.get<std::string>();
  }
  static const std::array<std::string, 8> kKinds = {"", "instruct", "base", "hf", "chat", "it", "pt", "thinking"};
  const std::string tail = letters_and_digits(fs::path(repository).filename().string());
  for (const std::string& one : shipped) {
    const std::string name = letters_and_digits(one);
    const bool begins = tail.starts_with(name);
    if (begins && std::ranges::find(kKinds, tail.substr(name.size())) != kKinds.end()) return one;
  }
  return "";
}

/// The shipped model with which a repository's name begins, "Instruct" or a version after it; empty: none.
std::string shipped_name_like(const std::string& repository, const std::vector<std::string>& shipped) {
  const std::string name = letters_and_digits(repository);
  std::string best;
  for (const std::string& one : shipped) {
    if (name.starts_with(letters_and_digits(one)) && one.size() > best.size()) best = one;
  }
  return best;
}

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
  // "meta-llama/Llama-3.1-70B" is a repository of Hugging Face, if there is no such file.
  if (looks_like_a_file && !fs::exists(path, ignored) && path.extension() != ".json") {
    const bool owned = std::ranges::count(name_or_path, '/') == 1 && !name_or_path.starts_with('.');
    if (const std::string known = owned ? shipped_of_repository(name_or_path, shipped) : ""; !known.empty()) {
      return load_file(base::shipped_data("models") / (known + ".json"));
    }
    const std::string near = shipped_name_like(path.filename().string(), shipped);
    if (!near.empty()) {
      throw base::Failure(base::ErrorKind::kInput,
                          fmt::format("there is no file or folder {}; did you mean \"{}\", which is shipped? For other "
                                      "models give the path of their config.json",
                                      base::quote(name_or_path), near));
    }
  }
  if (looks_like_a_file) return load_file(path);
  fail_unknown(name_or_path, shipped);
}

}  // namespace

Model load_model(const std::string& name_or_path) { return load(name_or_path).model; }

std::vector<std::string> ignored_members(const std::string& name_or_path) { return load(name_or_path).ignored; }

std::vector<std::string> models_left_out(const std::string& name_or_path) { return load(name_or_path).left_out; }

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
