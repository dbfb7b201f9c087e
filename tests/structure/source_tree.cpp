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

namespace trivium::structure {
namespace {

namespace fs = std::filesystem;

/// What every folder may include besides itself: the order of docs/architecture.md, written out in full.
const std::map<std::string, std::set<std::string>>& order() {
  static const std::map<std::string, std::set<std::string>> kOrder = {
      {"edge", {}},
      {"models", {"edge"}},
      {"hardware_profiles", {"edge"}},
      {"program", {"edge", "models"}},
      {"simulator", {"edge", "models", "program", "hardware_profiles"}},
      {"planner", {"edge", "models", "program", "hardware_profiles", "simulator"}},
      {"calibration", {"edge", "models", "program", "hardware_profiles", "simulator"}},
      {"report", {"edge", "models", "program", "hardware_profiles", "simulator", "planner", "calibration"}},
      {"runtime", {"edge", "models", "program", "hardware_profiles"}},
      {"cli",
       {"edge", "models", "program", "hardware_profiles", "simulator", "planner", "calibration", "report", "runtime"}},
      {"gui",
       {"edge", "models", "program", "hardware_profiles", "simulator", "planner", "calibration", "report", "runtime"}},
  };
  return kOrder;
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

/// The folder whose rules a file obeys besides those of `tests`: for `tests/gui/x.cpp` it is `gui`.
std::string home_of(const fs::path& relative) {
  auto step = relative.begin();
  if (*step == kTests && std::next(step) != relative.end()) ++step;
  return step->string();
}

/// The folder of the house that an include reaches, searched as the compiler does: beside the file when quoted, then
/// from the root. None: a header of the world outside.
std::optional<std::string> folder_reached(const fs::path& root, const fs::path& file, const std::string& header,
                                          bool quoted) {
  const fs::path beside = (file.parent_path() / header).lexically_normal();
  if (quoted && fs::exists(root / beside)) return first_step(beside);
  const fs::path from_root = fs::path(header).lexically_normal();
  const std::string first = first_step(from_root);
  if (order().contains(first) || first == kTests) return first;
  if (first == "..") return first_step(beside);
  return std::nullopt;
}

/// Why `file` may not include `header`; empty when it may.
std::string objection(const fs::path& root, const fs::path& file, const std::string& header, bool quoted) {
  const std::string from = first_step(file);
  const std::optional<std::string> to = folder_reached(root, file, header, quoted);
  if (to) {
    if (*to == from || from == kTests || order().at(from).contains(*to)) return "";
    return from + "/ stands below " + *to + "/ or beside it";
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

}  // namespace trivium::structure
