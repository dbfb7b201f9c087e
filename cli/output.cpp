#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "edge/quote.h"

namespace trivium::cli {
namespace {

namespace fs = std::filesystem;

/// What is wrong with the name; empty where nothing is.
std::string objection(const std::string& file) {
  std::error_code ignored;
  if (file.empty()) return "the name of the file is empty";
  const std::string name = edge::one_line(file);
  if (fs::is_directory(file, ignored)) return fmt::format("{} is a folder; name a file", name);
  if (fs::exists(file, ignored)) {
    return ::access(file.c_str(), W_OK) == 0 ? "" : fmt::format("{} may not be written", name);
  }
  const fs::path parent = fs::path(file).parent_path(), folder = parent.empty() ? fs::path(".") : parent;
  if (!fs::is_directory(folder, ignored)) {
    return fmt::format("{}: there is no folder {}; create it first", name, edge::one_line(folder.string()));
  }
  return ::access(folder.c_str(), W_OK) == 0 ? "" : fmt::format("{}: its folder may not be written", name);
}

}  // namespace

CLI::Validator output_file() { return CLI::Validator(objection, "FILE"); }

}  // namespace trivium::cli
