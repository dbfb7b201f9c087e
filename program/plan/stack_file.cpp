#include "program/plan/stack_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json_folder.h"
#include "base/quote.h"
#include "base/sourced_reader.h"
#include "program/plan/stack_flags.h"

namespace trivium::program {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string>& stack_words() {
  static const std::vector<std::string> kWords = {"schema", "name", "description", "base", "family", "sources"};
  return kWords;
}

/// Reads every file once, a base before what is based on it.
class StackReader {
 public:
  explicit StackReader(std::span<const fs::path> folders) {
    for (const fs::path& folder : folders) {
      for (const std::string& name : base::names_in(folder)) files_.try_emplace(name, folder / (name + ".json"));
    }
  }

  std::vector<StackFile> read() {
    std::vector<StackFile> all;
    for (const auto& [name, path] : files_) all.push_back(stack(name));
    return all;
  }

 private:
  const StackFile& stack(const std::string& name) {
    if (const auto known = read_.find(name); known != read_.end()) return known->second;
    const nlohmann::json json = base::read_json_file(files_.at(name));
    const base::JsonReader file(json, files_.at(name).string());
    open_.push_back(name);
    StackFile made = made_of(file);
    open_.pop_back();
    return read_.emplace(name, std::move(made)).first->second;
  }

  StackFile made_of(const base::JsonReader& file) {
    base::check_schema(file, kStackSchema);
    allow_members(file);
    StackFile made;
    if (const auto base = file.find("base")) {
      made = based_on(*base);
    }
    made.traits.name = name_at(file.at("name"));
    made.description = file.at("description").text();
    if (const auto family = file.find("family")) made.traits.family = family->text();
    const base::Sources sources = base::Sources::of(file);
    std::vector<std::string> unsourced;
    for (const std::string& word : stack_words()) unsourced.push_back("/" + word);
    base::demand_sources(file, sources, unsourced);
    const base::SourcedReader flags(file, sources);
    for (const StackFlag& flag : stack_flags()) {
      if (!flags.has(flag.name)) continue;
      flag.read(flags.constant(flag.name), made.traits);
      made.sources[flag.name] = sources.entries().at(std::string("/") + flag.name);
    }
    return made;
  }

  /// The base, with its sources marked as such.
  StackFile based_on(const base::JsonReader& asked) {
    const std::string name = asked.text();
    std::vector<std::string> known;
    for (const auto& [one, path] : files_) known.push_back(one);
    if (!files_.contains(name)) {
      const std::string near = base::nearest(name, known);
      asked.fail(
          fmt::format("unknown stack {}; {}", base::quote(name),
                      near.empty() ? "known: " + base::listed(known) : fmt::format("did you mean \"{}\"?", near)));
    }
    const auto again = std::ranges::find(open_, name);
    if (again != open_.end()) {
      asked.fail(fmt::format("bases go round in a circle: {}, then {}; give one of them no base",
                             fmt::join(again, open_.end(), ", then "), name));
    }
    StackFile base = stack(name);
    for (auto& [flag, source] : base.sources) {
      if (!source.starts_with("base ")) source = fmt::format("base {}: {}", name, source);
    }
    base.bases.insert(base.bases.begin(), name);
    return base;
  }

  std::string name_at(const base::JsonReader& name) const {
    if (name.text() != open_.back()) {
      name.fail(fmt::format("found {}; a stack is named as its file, {}", base::quote(name.text()),
                            base::quote(open_.back())));
    }
    return name.text();
  }

  static void allow_members(const base::JsonReader& file) {
    std::vector<std::string> members = stack_words();
    for (const StackFlag& flag : stack_flags()) members.emplace_back(flag.name);
    file.allow_only(members);
  }

  std::map<std::string, fs::path> files_;
  std::map<std::string, StackFile> read_;
  std::vector<std::string> open_;  // the files on the way to a base
};

std::vector<StackFile> read_all_stacks() {
  std::vector<fs::path> folders{base::shipped_data("stacks")};
  try {
    if (const fs::path own = base::user_data() / "stacks"; fs::is_directory(own)) folders.push_back(own);
  } catch (const base::Failure&) {  // an account without a home folder has no stacks of its own
  }
  return read_stacks(folders);
}

}  // namespace

std::vector<StackFile> read_stacks(std::span<const fs::path> folders) { return StackReader(folders).read(); }

const std::vector<StackFile>& stack_files() {
  static const std::vector<StackFile> kFiles = read_all_stacks();
  return kFiles;
}

const StackFile* find_stack_file(std::string_view name) {
  const auto& files = stack_files();
  const auto found = std::ranges::find(files, name, [](const StackFile& file) { return file.traits.name; });
  return found == files.end() ? nullptr : &*found;
}

}  // namespace trivium::program
