#include "models/family_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/json_folder.h"
#include "base/json_reader.h"
#include "base/quote.h"

namespace trivium::models {
namespace {

namespace fs = std::filesystem;

const std::string kFamilySchema = "trivium.family/1";

void check_members(const base::JsonReader& file) {
  file.allow_only({"schema", "name", "types", "base", "source", "text", "left_out", "defaults", "model", "ignored",
                   "refused", "lacking"});
  file.at("schema").one_of(std::span(&kFamilySchema, 1));
  for (const char* object : {"left_out", "defaults", "model", "ignored", "refused"}) {
    if (const auto member = file.find(object)) member->members();
  }
}

class FamilyFiles {
 public:
  explicit FamilyFiles(std::span<const fs::path> folders) {
    for (const fs::path& folder : folders) {
      for (const std::string& name : base::names_in(folder)) files_[name] = folder / (name + ".json");
    }
  }

  std::vector<Family> read() {
    std::vector<Family> all;
    for (const auto& [name, path] : files_) add(all, name, path);
    return all;
  }

 private:
  /// Every type of a file that lists what Trivium lacks is a family of its own.
  void add(std::vector<Family>& all, const std::string& name, const fs::path& path) {
    const nlohmann::json merged = merged_file(name);
    const base::JsonReader file(merged, path.string());
    if (const auto lacking = file.find("lacking")) {
      for (const auto& [type, reason] : lacking->members())
        all.push_back({type, {type}, path.string(), {}, reason.text()});
      return;
    }
    Family family{name, {}, path.string(), merged, {}};
    if (const auto types = file.find("types")) {
      for (const base::JsonReader& type : types->elements()) family.types.push_back(type.text());
    }
    all.push_back(std::move(family));
  }

  /// The file over its base's: members of objects one by one, null taking one away.
  nlohmann::json merged_file(const std::string& name) {
    if (const auto known = merged_.find(name); known != merged_.end()) return known->second;
    const fs::path path = files_.at(name);
    nlohmann::json json = base::read_json_file(path);
    const base::JsonReader file(json, path.string());
    check_members(file);
    if (file.at("name").text() != name) {
      file.at("name").fail(fmt::format("must be that of the file, {}", base::quote(name)));
    }
    const auto base_name = file.find("base");
    if (base_name) {
      check_base(*base_name, name);
      open_.push_back(name);
      nlohmann::json merged = merged_file(base_name->text());
      open_.pop_back();
      merged.erase("types");
      merged.merge_patch(json);
      json = std::move(merged);
    }
    return merged_[name] = json;
  }

  void check_base(const base::JsonReader& asked, const std::string& name) const {
    if (!files_.contains(asked.text())) {
      asked.fail(
          fmt::format("is no family: {}; give the name of a file of models/families", base::quote(asked.text())));
    }
    if (asked.text() == name || std::ranges::find(open_, asked.text()) != open_.end()) {
      asked.fail("goes round in a circle of bases; give one of them no base");
    }
  }

  std::map<std::string, fs::path> files_;
  std::map<std::string, nlohmann::json> merged_;
  std::vector<std::string> open_;  // on the way to a base
};

std::vector<Family> read_shipped_and_own() {
  std::vector<fs::path> folders{base::shipped_data("models") / "families"};
  try {
    if (const fs::path own = base::user_data() / "families"; fs::is_directory(own)) folders.push_back(own);
  } catch (const base::Failure&) {  // an account without a home folder has no families of its own
  }
  return read_families(folders);
}

}  // namespace

std::vector<Family> read_families(std::span<const fs::path> folders) { return FamilyFiles(folders).read(); }

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = read_shipped_and_own();
  return kFamilies;
}

const Family* find_family(std::string_view type) {
  const Family* lacking = nullptr;  // a file that reads a type comes before a list of what is lacking
  for (const Family& family : families()) {
    if (std::ranges::find(family.types, type) == family.types.end()) continue;
    if (family.lacking.empty()) return &family;
    lacking = &family;
  }
  return lacking;
}

}  // namespace trivium::models
