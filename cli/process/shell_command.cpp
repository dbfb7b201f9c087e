#include "cli/process/shell_command.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/quote.h"

namespace trivium::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{50};
constexpr std::chrono::seconds kGrace{3};

/// The child's side: nothing here may allocate.
[[noreturn]] void become(const char* command, int output) {
  ::setpgid(0, 0);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execl("/bin/sh", "sh", "-c", command, static_cast<char*>(nullptr));
  ::_exit(127);
}

bool has_ended(pid_t child, int& status) { return ::waitpid(child, &status, WNOHANG) == child; }

void end_group(pid_t child, int& status) {
  ::kill(-child, SIGTERM);
  for (const auto end = Clock::now() + kGrace; Clock::now() < end;) {
    if (has_ended(child, status)) return;
    std::this_thread::sleep_for(kLook);
  }
  ::kill(-child, SIGKILL);
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
}

}  // namespace

CommandEnd run_shell_command(const std::string& command, const std::string& log, std::chrono::seconds limit,
                             const std::stop_token& stop) {
  const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (output < 0) {
    throw base::Failure(base::ErrorKind::kInput, base::quote(log) + ": cannot be written: " + std::strerror(errno));
  }
  const pid_t child = ::fork();
  if (child == 0) become(command.c_str(), output);
  const int why = errno;
  ::close(output);
  if (child < 0) {
    throw base::Failure(base::ErrorKind::kRuntime, std::string("no process can be started: ") + std::strerror(why));
  }
  ::setpgid(child, child);
  CommandEnd end;
  int status = 0;
  const auto deadline = Clock::now() + limit;
  while (!has_ended(child, status)) {
    end.timed_out = Clock::now() > deadline;
    end.stopped = stop.stop_requested();
    if (end.timed_out || end.stopped) {
      end_group(child, status);
      break;
    }
    std::this_thread::sleep_for(kLook);
  }
  end.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

}  // namespace trivium::cli
