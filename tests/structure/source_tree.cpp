#include "tests/structure/source_tree.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace trivium::structure {
namespace {

namespace fs = std::filesystem;

/// What every folder may include besides itself: the order of docs/explanation/architecture.md, written out in full.
const std::map<std::string, std::set<std::string>>& order() {
  static const std::map<std::string, std::set<std::string>> kOrder = {
      {"base", {}},
      {"models", {"base"}},
      {"hardware_profiles", {"base"}},
      {"program", {"base", "models"}},
      {"simulator", {"base", "models", "program", "hardware_profiles"}},
      {"planner", {"base", "models", "program", "hardware_profiles", "simulator"}},
      {"calibration", {"base", "models", "program", "hardware_profiles", "simulator"}},
      {"report", {"base", "models", "program", "hardware_profiles", "simulator", "planner", "calibration"}},
      {"runtime", {"base", "models", "program", "hardware_profiles"}},
      {"cli",
       {"base", "models", "program", "hardware_profiles", "simulator", "planner", "calibration", "report", "runtime"}},
      {"gui",
       {"base", "models", "program", "hardware_profiles", "simulator", "planner", "calibration", "report", "runtime"}},
  };
  return kOrder;
}

/// The modules of a folder, each of which may include those before it. Files next to them may include all, and no
/// module includes them.
const std::map<std::string, std::vector<std::string>>& modules() {
  static const std::map<std::string, std::vector<std::string>> kModules = {
      {"program", {"schedules", "plan", "ir", "lower", "verify", "record"}},
      {"simulator",
       {"placement", "collectives", "cost", "sharing", "memory", "analytic", "schedule", "replay", "certainty",
        "iteration", "predict", "studies"}},
      {"planner", {"space", "bound", "search", "advice", "launch"}},
      {"calibration", {"measurements", "validate", "published", "certainty", "fit", "replan", "foreign"}},
      {"cli", {"options", "render", "process", "commands"}},
  };
  return kModules;
}

/// The module's place in its folder, that of a file next to them after them all; none: the folder has no modules.
std::optional<std::ptrdiff_t> module_of(const fs::path& relative) {
  const auto folder = modules().find(relative.begin()->string());
  if (folder == modules().end()) return std::nullopt;
  const auto& all = folder->second;
  if (std::distance(relative.begin(), relative.end()) < 3) return std::ssize(all);
  const auto module = std::find(all.begin(), all.end(), std::next(relative.begin())->string());
  return module - all.begin();
}

constexpr std::string_view kTests = "tests";

/// Headers of the world outside that only one folder may know.
struct Outsider {
  std::regex header;
  std::string_view name;
  std::string_view home;
};

const std::array<Outsider, 4>& outsiders() {
  static const std::array<Outsider, 4> kOutsiders = {{
      {std::regex(
           R"((cuda|cublas|cudnn|cupti|curand|cusolver|nvtx|nvml|nvToolsExt|thrust/|cub/|cooperative_groups).*)"),
       "CUDA", "runtime"},
      {std::regex(R"(nccl.*)"), "NCCL", "runtime"},
      {std::regex(R"((mpi|mpi-ext|mpicxx)\.h|openmpi/.*)"), "MPI", "runtime"},
      {std::regex(R"(Qt?[A-Z].*)"), "Qt", "gui"},
  }};
  return kOutsiders;
}

bool is_source(const fs::path& file) {
  static const std::set<std::string> kExtensions = {".c",  ".cc",  ".cpp", ".cxx", ".h",
                                                    ".hh", ".hpp", ".inl", ".cu",  ".cuh"};
  return kExtensions.contains(file.extension().string());
}

std::string first_step(const fs::path& relative) { return relative.empty() ? "" : relative.begin()->string(); }

/// The folder whose rules a file follows in addition to those of `tests`: for `tests/gui/x.cpp` it is `gui`.
std::string home_of(const fs::path& relative) {
  auto step = relative.begin();
  if (*step == kTests && std::next(step) != relative.end()) ++step;
  return step->string();
}

/// The file of the project that an include reaches, searched as the compiler does: next to the file when quoted, then
/// from the root. None: a header of the world outside.
std::optional<fs::path> file_reached(const fs::path& root, const fs::path& file, const std::string& header,
                                     bool quoted) {
  const fs::path beside = (file.parent_path() / header).lexically_normal();
  if (quoted && fs::exists(root / beside)) return beside;
  const fs::path from_root = fs::path(header).lexically_normal();
  const std::string first = first_step(from_root);
  if (order().contains(first) || first == kTests) return from_root;
  if (first == "..") return beside;
  return std::nullopt;
}

/// Why `file` may not include `header`; empty when it may.
std::string objection(const fs::path& root, const fs::path& file, const std::string& header, bool quoted) {
  const std::string from = first_step(file);
  if (const std::optional<fs::path> reached = file_reached(root, file, header, quoted)) {
    const std::string to = first_step(*reached);
    if (to == from) {
      const auto here = module_of(file), there = module_of(*reached);
      if (!here || !there || *there <= *here) return "";
      const bool beside = std::distance(reached->begin(), reached->end()) < 3;
      const auto name = [](const fs::path& path) { return std::next(path.begin())->string(); };
      return name(file) + "/ stands below " + name(*reached) + (beside ? "" : "/");
    }
    if (from == kTests || order().at(from).contains(to)) return "";
    return from + "/ stands below " + to + "/ or next to it";
  }
  for (const Outsider& outsider : outsiders()) {
    if (std::regex_match(header, outsider.header) && home_of(file) != outsider.home) {
      return std::string(outsider.name) + " is known in " + std::string(outsider.home) + "/ alone";
    }
  }
  return "";
}

std::ifstream open(const fs::path& path) {
  std::ifstream stream(path);
  if (!stream) throw std::runtime_error("cannot read " + path.string());
  return stream;
}

}  // namespace

std::vector<fs::path> source_files(const fs::path& root) {
  std::vector<std::string> folders{std::string(kTests)};
  for (const auto& [folder, allowed] : order()) folders.push_back(folder);
  std::vector<fs::path> files;
  for (const std::string& folder : folders) {
    if (!fs::is_directory(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.is_regular_file() && is_source(entry.path())) files.push_back(entry.path().lexically_relative(root));
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> forbidden_includes(const fs::path& root) {
  static const std::regex kInclude(R"re(^\s*#\s*include\s*(["<])([^">]+)[">].*)re");
  std::vector<std::string> sentences;
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string folder = entry.path().filename().string();
    if (fs::exists(entry.path() / "CMakeLists.txt") && folder != kTests && !order().contains(folder)) {
      sentences.push_back(folder + "/: has no place in the order of folders");
    }
  }
  for (const auto& [folder, known] : modules()) {
    if (!fs::is_directory(root / folder)) continue;
    for (const auto& entry : fs::directory_iterator(root / folder)) {
      const std::string module = entry.path().filename().string();
      const bool unknown = entry.is_directory() && std::find(known.begin(), known.end(), module) == known.end();
      if (unknown) sentences.push_back(folder + "/" + module + "/: has no place in the order of modules");
    }
  }
  std::sort(sentences.begin(), sentences.end());
  for (const fs::path& file : source_files(root)) {
    std::ifstream stream = open(root / file);
    std::string line;
    std::smatch match;
    for (int number = 1; std::getline(stream, line); ++number) {
      if (!std::regex_match(line, match, kInclude)) continue;
      const std::string reason = objection(root, file, match[2], match[1] == "\"");
      if (reason.empty()) continue;
      sentences.push_back(file.generic_string() + ":" + std::to_string(number) + ": includes " + match[2].str() + ": " +
                          reason);
    }
  }
  return sentences;
}

std::vector<std::string> files_longer_than(const fs::path& root, std::size_t limit) {
  std::vector<std::string> sentences;
  for (const fs::path& file : source_files(root)) {
    std::ifstream stream = open(root / file);
    std::size_t lines = 0;
    for (std::string line; std::getline(stream, line);) ++lines;
    if (lines > limit) sentences.push_back(file.generic_string() + ": " + std::to_string(lines) + " lines");
  }
  return sentences;
}

std::vector<std::string> schedules_named(const fs::path& root) {
  static const std::set<std::string> kMay = {
      "planner/advice/baselines.cpp",         // the naive split of layers runs one stage at a time
      "planner/launch/deepspeed_export.cpp",  // Megatron-DeepSpeed has a flag for ZB-H1
      "planner/launch/deepspeed_import.cpp",
  };
  static const std::regex kNamed(R"(.*\bSchedule::k[A-Z0-9].*)");
  std::vector<std::string> sentences;
  for (const fs::path& file : source_files(root)) {
    const std::string name = file.generic_string();
    if (name.starts_with("program/schedules/") || first_step(file) == kTests || kMay.contains(name)) continue;
    std::ifstream stream = open(root / file);
    int number = 0;
    for (std::string line; std::getline(stream, line);) {
      ++number;
      if (!std::regex_match(line, kNamed)) continue;
      sentences.push_back(name + ":" + std::to_string(number) + ": names a schedule; ask its traits");
    }
  }
  return sentences;
}

std::vector<std::string> prose_wider_than(const fs::path& root, std::size_t limit) {
  std::vector<fs::path> folders{root, root / "docs", root / "validation", root / "hardware_profiles"};
  if (fs::is_directory(root / "docs")) {
    for (const auto& entry : fs::recursive_directory_iterator(root / "docs")) {
      if (entry.is_directory()) folders.push_back(entry.path());
    }
  }
  std::vector<std::string> sentences;
  for (const fs::path& folder : folders) {
    if (!fs::is_directory(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() != ".md") continue;
      std::ifstream stream = open(entry.path());
      bool code = false;
      int number = 0;
      for (std::string line; std::getline(stream, line);) {
        ++number;
        if (line.starts_with("```")) code = !code;
        const bool is_table =
            line.find_first_not_of(' ') != std::string::npos && line[line.find_first_not_of(' ')] == '|';
        const auto columns = static_cast<std::size_t>(std::count_if(
            line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
        if (code || line.starts_with("    ") || is_table || columns <= limit) continue;
        sentences.push_back(entry.path().lexically_relative(root).generic_string() + ":" + std::to_string(number) +
                            ": " + std::to_string(columns) + " columns");
      }
    }
  }
  std::sort(sentences.begin(), sentences.end());
  return sentences;
}

}  // namespace trivium::structure
