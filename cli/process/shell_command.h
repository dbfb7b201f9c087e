// A command of the user's shell, with its output in a file.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>

namespace trivium::cli {

/// How a command ended.
struct CommandEnd {
  int status = 0;          ///< its exit status; 128 and the signal where one ended it
  bool timed_out = false;  ///< it was ended after `limit`
  bool stopped = false;    ///< it was ended because `stop` asked for it
};

/// Runs `/bin/sh -c command` in a process group of its own, both of its output streams in the file `log`, which is made
/// anew. Ended early, the whole group gets SIGTERM and, three seconds later, SIGKILL. Errors: Failure(kRuntime) where
/// no process can be started, Failure(kInput) where the log cannot be written.
CommandEnd run_shell_command(const std::string& command, const std::string& log, std::chrono::seconds limit,
                             const std::stop_token& stop);

}  // namespace trivium::cli
