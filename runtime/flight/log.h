// Reading flight records, also while their ranks write them and after they died.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/flight/ring.h"

namespace trivium::runtime::flight {

constexpr const char* kMagic = "TRVFLGHT";
constexpr std::int32_t kVersion = 1;

/// One rank's record.
struct Log {
  int rank = 0, ranks = 0, pid = 0;
  std::uint64_t program_hash = 0;
  std::uint64_t count = 0;
  End end{};
  std::string message;
  std::vector<Entry> entries;  ///< oldest first; the last one is what the rank does, or did when it died
};

/// Errors: base::Failure(kInput) where the file is no flight record, a torn one, or one of another user.
Log read_log(const std::filesystem::path& path);

/// The records in a folder, by rank; those that cannot be read are left out.
std::vector<Log> read_logs(const std::filesystem::path& folder);

/// What the system says of a process of this machine: 'T' where it is stopped, 'R', 'S', 'D'; 'Z' or none: dead.
std::optional<char> process_state(int pid);

}  // namespace trivium::runtime::flight
