#include "cli/supervise.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "edge/error.h"
#include "edge/files.h"
#include "edge/quote.h"
#include "runtime/flight/report.h"

extern char** environ;

namespace trivium::cli {
namespace {

namespace fs = std::filesystem;
namespace flight = runtime::flight;

constexpr std::chrono::milliseconds kPoll{20};
constexpr int kSignalled = 128;

/// The words this process was started with.
std::vector<std::string> own_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

/// The command of one rank: ours without what is for the supervisor alone.
std::vector<std::string> rank_words(const SurvivalOptions& options, const fs::path& records, bool resume) {
  std::vector<std::string> words{"mpirun",          "-q",        "-n",  std::to_string(options.processes),
                                 "--oversubscribe", "--bind-to", "none"};
  if (::geteuid() == 0) words.emplace_back("--allow-run-as-root");
  const std::vector<std::string> own = own_words();
  std::error_code ignored;
  words.push_back(fs::read_symlink("/proc/self/exe", ignored).string());
  bool resumes = false;
  for (std::size_t i = 1; i < own.size(); ++i) {
    const std::string name = own[i].substr(0, own[i].find('='));
    const bool ours = name == "--processes" || name == "--max-restarts" || name == "--flight-record";
    if (ours && name == own[i]) ++i;  // its value is the next word
    if (ours) continue;
    resumes = resumes || own[i] == "--resume";
    words.push_back(own[i]);
  }
  words.insert(words.end(), {"--flight-record", records.string()});
  if (resume && !resumes) words.emplace_back("--resume");
  return words;
}

/// mpirun in a process group of its own: Ctrl-C then reaches this process alone, which asks for a checkpoint first.
pid_t start(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_t files;  // mpirun would read what was meant for nobody
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, "mpirun", &files, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return child;
  throw edge::Failure(edge::ErrorKind::kHardware,
                      fmt::format("cannot start mpirun: {}; install openmpi-bin, or leave --processes out",
                                  std::error_code(error, std::generic_category()).message()));
}

/// Rank 0 decides for all when to stop.
void ask_to_stop(const fs::path& records) {
  for (const flight::Log& log : flight::read_logs(records)) {
    if (log.rank == 0) ::kill(log.pid, SIGINT);
  }
}

int wait_for(pid_t child, const fs::path& records, const Interrupts& interrupts) {
  bool asked = false;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (interrupts.happened() && !asked) ask_to_stop(records), asked = true;
    std::this_thread::sleep_for(kPoll);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
}

/// Wrong options and files fail every time; only what died while it ran is worth another try.
bool died(int exit_code) {
  switch (static_cast<edge::ErrorKind>(exit_code)) {
    case edge::ErrorKind::kUsage:
    case edge::ErrorKind::kInput:
    case edge::ErrorKind::kNoPlan:
    case edge::ErrorKind::kHardware:
    case edge::ErrorKind::kInterrupted:
      return false;
    default:
      return exit_code != 0;
  }
}

fs::path records_of(const SurvivalOptions& options, int attempt) {
  const fs::path folder = options.flight_record.empty()
                              ? fs::temp_directory_path() / fmt::format("trivium-flight-{}", ::getpid())
                              : fs::path(options.flight_record);
  const fs::path records = folder / fmt::format("attempt-{}", attempt);
  std::error_code ignored;
  fs::remove_all(records, ignored);
  return records;
}

}  // namespace

void add_survival_options(CLI::App& command, SurvivalOptions& options) {
  constexpr int kMostProcesses = 4096, kMostRestarts = 1'000'000;
  constexpr double kLongest = 1e6;
  CLI::Option* processes = command
                               .add_option("--processes", options.processes,
                                           "A process a rank under mpirun, watched over (as many as ranks)")
                               ->check(CLI::Range(1, kMostProcesses));
  command
      .add_option("--max-restarts", options.max_restarts, "How often a run that died begins again at its checkpoint")
      ->check(CLI::Range(0, kMostRestarts))
      ->needs(processes);
  command.add_option("--flight-record", options.flight_record, "Folder for what every rank was doing last")
      ->type_name("DIR");
  command
      .add_option("--deadline", options.deadline_s,
                  "With flight records: seconds without any progress to give up (0: never)")
      ->check(CLI::Range(0.0, kLongest))
      ->capture_default_str();
}

int supervise(const SurvivalOptions& options, const program::Program& program, bool has_checkpoints,
              const Interrupts& interrupts) {
  if (options.processes != program.mesh.size()) {
    throw edge::Failure(edge::ErrorKind::kUsage, fmt::format("the plan has {} ranks, --processes says {}",
                                                             program.mesh.size(), options.processes));
  }
  if (options.max_restarts > 0 && !has_checkpoints) {
    throw edge::Failure(edge::ErrorKind::kUsage, "--max-restarts needs --checkpoint DIR to begin again from");
  }
  for (int attempt = 0;; ++attempt) {
    const fs::path records = records_of(options, attempt);
    const int code = wait_for(start(rank_words(options, records, attempt > 0)), records, interrupts);
    std::error_code ignored;
    if (!died(code)) {
      if (options.flight_record.empty()) fs::remove_all(records.parent_path(), ignored);
      return code;
    }
    const std::vector<flight::Log> logs = flight::read_logs(records);
    const flight::Finding finding = flight::explain_death(program, logs);
    if (logs.empty()) {
      fmt::print(stderr, "mpirun ended with code {} before any rank began\n", code);
    } else {
      fmt::print(stderr, "the run died{}:\n{}flight records: {}\n",
                 finding.culprits.empty() ? "" : fmt::format(" with rank {}", fmt::join(finding.culprits, ", ")),
                 finding.text, edge::one_line(records.string()));
    }
    if (attempt == options.max_restarts || interrupts.happened()) return static_cast<int>(edge::ErrorKind::kRuntime);
    fmt::print(stderr, "note: beginning again at the last checkpoint ({} of {})\n", attempt + 1, options.max_restarts);
  }
}

}  // namespace trivium::cli
