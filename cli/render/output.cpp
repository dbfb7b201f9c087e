#include "cli/render/output.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/quote.h"
#include "cli/render/output_kind.h"

namespace trivium::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = "writes ";

CLI::Validator marked(std::function<std::string(const std::string&)> judge, OutputKind kind) {
  CLI::Validator validator([judge = std::move(judge)](std::string& file) { return judge(file); }, "");
  return validator.name(fmt::format("{}{}", kMark, static_cast<int>(kind)));
}

std::optional<OutputKind> kind_written_by(const CLI::Option& option) {
  constexpr int kMostValidators = 8;
  for (int i = 0; i < kMostValidators; ++i) {
    try {
      const std::string& name = const_cast<CLI::Option&>(option).get_validator(i)->get_name();
      if (name.starts_with(kMark)) return static_cast<OutputKind>(std::stoi(name.substr(kMark.size())));
    } catch (const CLI::OptionNotFound&) {
      return std::nullopt;  // there are no more
    }
  }
  return std::nullopt;
}

/// A file by what it is, whatever its name.
struct Identity {
  dev_t device = 0;
  ino_t number = 0;
  bool is_folder = false;
};

std::optional<Identity> identity_of(const std::string& path) {
  struct stat status {};
  if (path.empty() || ::stat(path.c_str(), &status) != 0) return std::nullopt;
  return Identity{status.st_dev, status.st_ino, S_ISDIR(status.st_mode)};
}

bool is_same(const Identity& a, const Identity& b) { return a.device == b.device && a.number == b.number; }

struct Word {
  const CLI::Option* option = nullptr;
  std::string text;
  std::optional<OutputKind> kind;  ///< of what is written there; empty: an input, or no file at all
};

std::string name_of(const CLI::Option& option) {
  if (!option.get_snames().empty()) return "-" + option.get_snames().front();
  return option.get_lnames().empty() ? option.get_name() : "--" + option.get_lnames().front();
}

std::string said(const Word& word) { return fmt::format("{} {}", name_of(*word.option), base::one_line(word.text)); }

/// The files that the word could name: itself, and of `A.json:2+B.json:1` the terms.
std::vector<std::string> files_in(const std::string& text) {
  std::vector<std::string> files{text};
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    const std::string term = text.substr(begin, end - begin);
    files.push_back(term);
    files.push_back(term.substr(0, term.rfind(':')));
    begin = end + 1;
  }
  return files;
}

[[noreturn]] void refuse(const std::string& what) { throw base::Failure(base::ErrorKind::kUsage, what); }

bool lies_inside(const std::string& file, const std::string& folder) {
  std::error_code ignored;
  const std::string inner = fs::canonical(file, ignored).string(), outer = fs::canonical(folder, ignored).string();
  return !outer.empty() && inner.starts_with(outer + "/");
}

void check_against_input(const Word& output, const Word& input) {
  const auto written = identity_of(output.text);
  if (!written) return;  // a file that is not there yet is no input
  for (const std::string& file : files_in(input.text)) {
    const auto read = identity_of(file);
    if (!read) continue;
    if (is_same(*written, *read)) refuse(said(output) + " is one of the inputs; give another file");
    if (read->is_folder && !written->is_folder && lies_inside(output.text, file)) {
      refuse(fmt::format("{} lies inside {}, which is read; give another file", said(output), base::one_line(file)));
    }
  }
}

void check_against_output(const Word& one, const Word& other) {
  const auto first = identity_of(one.text), second = identity_of(other.text);
  std::error_code ignored;
  const bool same = first && second
                        ? is_same(*first, *second)
                        : fs::weakly_canonical(one.text, ignored) == fs::weakly_canonical(other.text, ignored);
  struct stat status {};
  const bool is_stream = ::stat(one.text.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
  const bool both_folders = one.kind == OutputKind::kFolder && other.kind == OutputKind::kFolder;
  if (same && !is_stream && !both_folders)
    refuse(fmt::format("{} and {} are one file; give two", said(one), said(other)));
}

void check_command(const CLI::App& command) {
  std::vector<Word> words;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& text : option->results()) words.push_back({option, text, kind_written_by(*option)});
  }
  const CLI::Option* force = command.get_option_no_throw("--force");
  const bool forced = force != nullptr && force->count() > 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].kind) continue;
    for (std::size_t j = 0; j < words.size(); ++j) {
      if (!words[j].kind) check_against_input(words[i], words[j]);
      if (words[j].kind && j < i) check_against_output(words[j], words[i]);
    }
    if (forced) continue;
    if (const std::string what = other_kind(words[i].text, *words[i].kind); !what.empty()) {
      refuse(fmt::format("{} exists and is not {}; --force replaces it", said(words[i]), what));
    }
  }
}

}  // namespace

std::string objection_to_output(const std::string& file) {
  std::error_code ignored;
  if (file.empty()) return "the name of the file is empty";
  const std::string name = base::one_line(file);
  if (fs::is_directory(file, ignored)) return fmt::format("{} is a folder; name a file", name);
  if (fs::exists(file, ignored)) {
    return ::access(file.c_str(), W_OK) == 0 ? "" : fmt::format("{} may not be written", name);
  }
  const fs::path parent = fs::path(file).parent_path(), folder = parent.empty() ? fs::path(".") : parent;
  if (!fs::is_directory(folder, ignored)) {
    return fmt::format("{}: folder {} does not exist; create it first", name, base::one_line(folder.string()));
  }
  return ::access(folder.c_str(), W_OK) == 0 ? "" : fmt::format("{}: its folder may not be written", name);
}

CLI::Option* mark_output(CLI::App& command, CLI::Option* option, OutputKind kind) {
  if (kind != OutputKind::kFolder && command.get_option_no_throw("--force") == nullptr) {
    command.add_flag("--force")->description("Replace files of another kind than what is written");
  }
  return option->check(marked([](const std::string&) { return std::string(); }, kind));
}

CLI::Option* add_output(CLI::App& command, const std::string& name, std::string& file, const std::string& help,
                        OutputKind kind) {
  CLI::Option* option =
      command.add_option(name, file, help)->type_name("FILE")->check(marked(objection_to_output, kind));
  if (command.get_option_no_throw("--force") == nullptr) {
    command.add_flag("--force")->description("Replace files of another kind than what is written");
  }
  return option;
}

void check_files(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  check_command(*command);
}

}  // namespace trivium::cli
