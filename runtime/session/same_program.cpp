#include "runtime/session/same_program.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "program/record/run_record.h"

namespace trivium::runtime::session {

namespace {

/// Whether this rank's word is that of rank 0; all are as long.
bool is_that_of_first(Communicator& communicator, const std::string& mine) {
  std::array<int, 1> alone{communicator.rank()};
  std::vector<int> everyone(static_cast<std::size_t>(communicator.size()));
  for (std::size_t i = 0; i < everyone.size(); ++i) everyone[i] = static_cast<int>(i);
  const int world = communicator.make_group(everyone.size() == 1 ? std::span<const int>(alone) : everyone);
  std::string first = mine;
  communicator.broadcast(world, first.data(), static_cast<std::int64_t>(first.size()), 0);
  return first == mine;
}

/// FNV-1a of the files' names and contents, in the order of their names.
std::string hash_of_files(const std::filesystem::path& folder, std::string_view extension) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == extension) files[entry.path().filename().string()] = base::read_file(entry.path());
  }
  std::uint64_t hash = 14695981039346656037ULL;
  const auto add = [&](const std::string& text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    hash = (hash ^ text.size()) * 1099511628211ULL;
  };
  for (const auto& [name, content] : files) add(name), add(content);
  return fmt::format("{:016x}", hash);
}

}  // namespace

void check_same_program(Communicator& communicator, const program::Program& program) {
  if (is_that_of_first(communicator, program::hash_of(program))) return;
  communicator.abort(fmt::format("rank {} lowered another program than rank 0", communicator.rank()));
}

void check_same_files(Communicator& communicator, const std::filesystem::path& folder, std::string_view extension) {
  if (is_that_of_first(communicator, hash_of_files(folder, extension))) return;
  communicator.abort(fmt::format("rank {} has other files in {} than rank 0", communicator.rank(), folder.string()));
}

}  // namespace trivium::runtime::session
