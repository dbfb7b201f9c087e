#include "runtime/flight/log.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/refuse.h"

namespace trivium::runtime::flight {
namespace {

using base::refuse;

/// A record names processes that are signalled: one that another user of the machine wrote is not believed.
void require_own(const std::filesystem::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return;  // reading it tells why
  if (!S_ISREG(status.st_mode)) refuse(path, "not a regular file, so no flight record");
  if (status.st_uid != ::geteuid()) refuse(path, "a flight record of another user; it is not believed");
}

}  // namespace

Log read_log(const std::filesystem::path& path) {
  require_own(path);
  const std::string bytes = base::read_file(path);
  if (bytes.size() != sizeof(Content)) refuse(path, "not a flight record, or a torn one");
  const auto content = std::make_unique<Content>();
  std::memcpy(content.get(), bytes.data(), sizeof(Content));
  if (std::memcmp(content->magic, kMagic, sizeof content->magic) != 0) refuse(path, "not a flight record");
  if (content->version != kVersion) {
    refuse(path, fmt::format("a flight record of version {}; version {} is read", content->version, kVersion));
  }
  const auto doing_is_known = [](const Entry& entry) {
    return entry.doing >= Doing::kStarting && entry.doing <= Doing::kCheckpoint;
  };
  Log log{.rank = content->rank,
          .ranks = content->ranks,
          .pid = content->pid,
          .program_hash = content->program_hash,
          .count = content->count,
          .end = content->end,
          .message = {},
          .entries = {}};
  if (log.rank < 0 || log.rank >= log.ranks || log.end < End::kNone || log.end > End::kTerminated) {
    refuse(path, "a flight record that contradicts itself");
  }
  content->message[sizeof content->message - 1] = '\0';
  log.message = content->message;
  const std::uint64_t kept = std::min<std::uint64_t>(content->count, kCapacity);
  for (std::uint64_t i = content->count - kept; i < content->count; ++i) {
    if (doing_is_known(content->entries[i % kCapacity])) log.entries.push_back(content->entries[i % kCapacity]);
  }
  return log;
}

std::vector<Log> read_logs(const std::filesystem::path& folder) {
  std::vector<Log> logs;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".") || entry.path().extension() != ".flight") continue;
    try {
      logs.push_back(read_log(entry.path()));
    } catch (const base::Failure&) {
      continue;  // the others may still tell what happened
    }
  }
  std::sort(logs.begin(), logs.end(), [](const Log& a, const Log& b) { return a.rank < b.rank; });
  return logs;
}

std::optional<char> process_state(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  // "pid (name) state …": the name may hold anything, so the last bracket counts.
  if (!std::getline(file, line)) return std::nullopt;
  const std::size_t bracket = line.rfind(')');
  if (bracket == std::string::npos || bracket + 2 >= line.size()) return std::nullopt;
  return line[bracket + 2];
}

}  // namespace trivium::runtime::flight
