// A command run where it can leave nothing behind.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace trivium::cli {

struct ConfinedCommand {
  std::vector<std::string> words;
  std::filesystem::path working_folder;
  std::filesystem::path writable;        ///< the one folder in which files may be written
  std::filesystem::path log;             ///< inside it: standard output and error
  std::vector<std::string> environment;  ///< NAME=value, all of them
  std::chrono::seconds limit{60};
};

struct ConfinedOutcome {
  int status = 0;  ///< as a shell has it: 128 + signal
  bool timed_out = false;
  bool is_sealed = false;  ///< the rest of the file system was read-only, the network and processes its own
};

/// Runs the command with standard input closed. All its processes are dead on return. Where the kernel grants name
/// spaces, it sees the machine read-only but for `writable`, has no network, and its processes die with it; elsewhere
/// only its process group is ended. Errors: Failure(kRuntime) where no process can be started.
ConfinedOutcome run_confined(const ConfinedCommand& command);

}  // namespace trivium::cli
