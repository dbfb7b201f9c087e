#include "planner/launch/surroundings.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/quote.h"
#include "planner/launch/shell/syntax.h"

namespace trivium::planner::launch {
namespace {

constexpr std::uintmax_t kLargest = std::uintmax_t{4} << 20;
constexpr int kMostFolders = 5;

std::optional<std::string> content_near(const std::filesystem::path& folder, const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path at = folder;
  for (int i = 0; i < kMostFolders; ++i) {
    const fs::path path = at / name;  // an absolute name replaces the folder
    if (fs::is_regular_file(path, ignored) && fs::file_size(path, ignored) <= kLargest) {
      try {
        return base::read_file(path);
      } catch (const base::Failure&) {
        return std::nullopt;
      }
    }
    if (!at.has_parent_path() || at.parent_path() == at) break;
    at = at.parent_path();
  }
  return std::nullopt;
}

}  // namespace

shell::Surroundings surroundings_of(const std::string& path, const std::vector<std::string>& environment) {
  shell::Surroundings around;
  around.script = path;
  if (path != "-") {
    std::error_code ignored;
    const std::filesystem::path folder = std::filesystem::absolute(path, ignored).parent_path();
    around.read_file = [folder](const std::string& name) { return content_near(folder, name); };
  }
  for (const std::string& pair : environment) {
    const std::size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos || !shell::is_name_start(pair.front())) {
      throw base::Failure(base::ErrorKind::kUsage, fmt::format("--env: {} is no NAME=VALUE", base::quote(pair)));
    }
    around.given[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return around;
}

}  // namespace trivium::planner::launch
