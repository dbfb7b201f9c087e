#include "cli/process/confined.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/error.h"

namespace trivium::cli {
namespace {

constexpr int kCannotStart = 127;

bool write_text(const char* path, const std::string& text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool done = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  return done;
}

/// The machine read-only but for one folder, no network, processes of its own. False where the kernel grants it not.
bool seal(const std::filesystem::path& writable) {
  const uid_t user = getuid();
  const gid_t group = getgid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC) != 0) return false;
  write_text("/proc/self/setgroups", "deny");
  if (!write_text("/proc/self/uid_map", std::to_string(user) + " " + std::to_string(user) + " 1")) return false;
  if (!write_text("/proc/self/gid_map", std::to_string(group) + " " + std::to_string(group) + " 1")) return false;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  if (mount(writable.c_str(), writable.c_str(), nullptr, MS_BIND, nullptr) != 0) return false;
  mount_attr read_only{};
  read_only.attr_set = MOUNT_ATTR_RDONLY;
  if (syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &read_only, sizeof(read_only)) != 0) return false;
  mount_attr open_again{};
  open_again.attr_clr = MOUNT_ATTR_RDONLY;
  return syscall(SYS_mount_setattr, AT_FDCWD, writable.c_str(), 0, &open_again, sizeof(open_again)) == 0;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));  // as execvpe wants it
  all.push_back(nullptr);
  return all;
}

/// In the child: streams, folder, and the command itself. Does not return.
[[noreturn]] void become_command(const ConfinedCommand& command) {
  const int nothing = open("/dev/null", O_RDONLY);
  const int log = open(command.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (nothing < 0 || log < 0 || chdir(command.working_folder.c_str()) != 0) _exit(kCannotStart);
  dup2(nothing, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  std::vector<char*> words = pointers(command.words);
  std::vector<char*> environment = pointers(command.environment);
  for (const std::string& pair : command.environment) {
    if (pair.starts_with("PATH=")) setenv("PATH", pair.c_str() + 5, 1);
  }
  execvpe(words.front(), words.data(), environment.data());
  _exit(kCannotStart);
}

/// Waits for `child`, and ends its whole group at the limit and at the end.
ConfinedOutcome end_of_child(pid_t child, std::chrono::seconds limit) {
  ConfinedOutcome outcome;
  const auto until = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > until) {
      outcome.timed_out = true;
      kill(-child, SIGKILL);
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(-child, SIGKILL);
  // What left the group is a child of ours by now (PR_SET_CHILD_SUBREAPER).
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

/// Children that the command left behind.
void end_orphans() {
  const std::string list = "/proc/self/task/" + std::to_string(getpid()) + "/children";
  for (int round = 0; round < 100; ++round) {
    std::ifstream file(list);
    bool any = false;
    for (pid_t orphan = 0; file >> orphan;) {
      any = true;
      kill(orphan, SIGKILL);
    }
    if (!any) return;
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

ConfinedOutcome run_confined(const ConfinedCommand& command) {
  int sealed[2];
  if (pipe2(sealed, O_CLOEXEC) != 0) throw base::Failure(base::ErrorKind::kRuntime, "no pipe can be made");
  // A keeper between us and the command: it enters the name spaces and is the parent of whatever is left behind.
  const pid_t keeper = fork();
  if (keeper < 0) throw base::Failure(base::ErrorKind::kRuntime, "no process can be started");
  if (keeper == 0) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char is_sealed = seal(command.writable) ? 1 : 0;
    const pid_t child = fork();
    if (child < 0) _exit(kCannotStart);
    if (child == 0) {
      setpgid(0, 0);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      become_command(command);
    }
    setpgid(child, child);
    const ConfinedOutcome outcome = end_of_child(child, command.limit);
    end_orphans();
    const char report[3] = {is_sealed, static_cast<char>(outcome.timed_out ? 1 : 0), static_cast<char>(outcome.status)};
    if (write(sealed[1], report, sizeof(report)) != sizeof(report)) _exit(1);
    _exit(0);
  }
  close(sealed[1]);
  char report[3] = {0, 0, kCannotStart};
  const bool told = read(sealed[0], report, sizeof(report)) == sizeof(report);
  close(sealed[0]);
  waitpid(keeper, nullptr, 0);
  if (!told) throw base::Failure(base::ErrorKind::kRuntime, "the command could not be started");
  return {static_cast<unsigned char>(report[2]), report[1] != 0, report[0] != 0};
}

}  // namespace trivium::cli
