#include "runtime/session/supervise.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/private_folder.h"
#include "base/quote.h"
#include "base/say.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/flight/report.h"
#include "runtime/mpi/loader.h"
#include "runtime/session/own_network.h"
#include "runtime/session/relay.h"
#include "runtime/session/supervisor.h"

extern char** environ;

namespace trivium::runtime::session {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kPoll{20};
constexpr int kSignalled = 128;

/// Where the processes of one run keep what is theirs alone; removed at the end, and after a kill by the next run.
struct Places {
  explicit Places(const fs::path& shared_memory) : temporary(base::temporary_folder(), kPrefix) {
    std::error_code ignored;
    if (fs::is_directory(shared_memory, ignored)) segments.emplace(shared_memory, kPrefix);
  }
  static void clear_up(const fs::path& shared_memory) {
    base::remove_abandoned_folders(base::temporary_folder(), kPrefix);
    base::remove_abandoned_folders(shared_memory, kPrefix);
  }
  static constexpr const char* kPrefix = "trivium-run-";
  base::PrivateFolder temporary;
  std::optional<base::PrivateFolder> segments;  ///< of shared memory
};

/// The words this process was started with.
std::vector<std::string> own_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

/// The command of the ranks: ours. What differs for them is in the environment. All are on this host: they talk through
/// shared memory and the loopback interface, and what they share lies in folders of this run.
std::vector<std::string> rank_words(const SupervisionOptions& options, const Places& places) {
  const fs::path& temporary = places.temporary.path();
  std::vector<std::string> words{"mpirun",          "-q",        "-n",  std::to_string(options.processes),
                                 "--oversubscribe", "--bind-to", "none"};
  const auto set = [&](const char* parameter, const std::string& value) {
    words.insert(words.end(), {"--mca", parameter, value});
  };
  set("pml", "ob1");
  set("btl", "self,vader");
  set("oob_tcp_if_include", "lo");
  set("btl_vader_backing_directory", places.segments ? places.segments->path().string() : temporary.string());
  set("orte_tmpdir_base", temporary.string());
  if (::geteuid() == 0) words.emplace_back("--allow-run-as-root");
  const std::vector<std::string> own = own_words();
  std::error_code ignored;
  words.push_back(fs::read_symlink("/proc/self/exe", ignored).string());
  words.insert(words.end(), own.begin() + 1, own.end());
  return words;
}

/// The variable that keeps mpirun's own listeners on the loopback interface as well. The dynamic linker takes no blanks
/// or colons in the name, so a link of this run stands for the library.
std::vector<std::pair<std::string, std::string>> stay_on_loopback(const Places& places) {
  const fs::path library = mpi::loopback_library();
  const fs::path link = (places.segments ? *places.segments : places.temporary).path() / "loopback.so";
  if (library.empty() || link.string().find_first_of(" :") != std::string::npos) return {};
  std::error_code error;
  if (!fs::is_symlink(link, error)) fs::create_symlink(library, link, error);
  if (error) return {};
  const char* const others = std::getenv("LD_PRELOAD");
  return {{"LD_PRELOAD", others == nullptr ? link.string() : link.string() + ":" + others}};
}

/// This process's environment with other values of some variables.
std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& others) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : others) lines.push_back(name + "=" + value);
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string_view name(*line, std::strcspn(*line, "="));
    const auto is_set = [&](const auto& other) { return other.first == name; };
    if (std::none_of(others.begin(), others.end(), is_set)) lines.emplace_back(*line);
  }
  return lines;
}

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// What the child does with its inheritance before it becomes mpirun; system calls alone, as other threads may hold
/// any lock.
void settle_child(bool own_network, int out, int err) {
  ::setpgid(0, 0);  // Ctrl-C reaches the parent alone, which asks for a checkpoint first
  if (own_network) enter_own_network();
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGXFSZ, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDONLY);  // mpirun would read what was meant for nobody
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
}

pid_t start(const std::vector<std::string>& words, const std::vector<std::string>& environment, bool own_network,
            const Relay& out, const Relay& err) {
  const std::vector<char*> arguments = pointers_to(words), variables = pointers_to(environment);
  int report[2];  // closes when mpirun runs, or tells why it does not
  if (::pipe2(report, O_CLOEXEC) != 0) throw base::Failure(base::ErrorKind::kRuntime, "cannot make a pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    settle_child(own_network, out.writing_end(), err.writing_end());
    ::execvpe(arguments.front(), arguments.data(), variables.data());
    const int error = errno;
    static_cast<void>(!::write(report[1], &error, sizeof error));
    ::_exit(1);
  }
  ::close(report[1]);
  int error = child < 0 ? errno : 0;
  if (child > 0 && ::read(report[0], &error, sizeof error) > 0) ::waitpid(child, nullptr, 0);
  ::close(report[0]);
  if (error == 0) return child;
  throw base::Failure(base::ErrorKind::kHardware,
                      fmt::format("cannot start mpirun: {}; install openmpi-bin, or leave --processes out",
                                  std::generic_category().message(error)));
}

/// Rank 0 decides for all when to stop. Whether it was there to be asked: a record may be anybody's, so that only
/// processes that mpirun started are believed.
bool ask_to_stop(const fs::path& records, pid_t mpirun) {
  for (const flight::Log& log : flight::read_logs(records)) {
    if (log.rank == 0 && descends_from(log.pid, mpirun)) return ::kill(log.pid, SIGINT) == 0;
  }
  return false;
}

/// An mpirun that stands still without a rank: Open MPI 4.1 may where it finds no room for what its processes share.
class StandsStill {
 public:
  explicit StandsStill(pid_t mpirun) : mpirun_(mpirun) {}

  /// Whether it is time to end it.
  bool operator()() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_look_) return false;
    next_look_ = now + std::chrono::seconds(1);
    if (has_children(mpirun_)) latest_rank_ = now;
    return now - latest_rank_ > kPatience;
  }
  static constexpr std::chrono::seconds kPatience{30};

 private:
  pid_t mpirun_;
  std::chrono::steady_clock::time_point latest_rank_ = std::chrono::steady_clock::now(), next_look_ = latest_rank_;
};

int wait_for(pid_t child, const fs::path& records, const std::stop_token& stop, Relay& out, Relay& err) {
  bool asked = false;
  StandsStill stands_still(child);
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (stop.stop_requested() && !asked) asked = ask_to_stop(records, child);
    if (stands_still()) {
      base::say("note: mpirun has had no rank for {} s and is ended; is there room in TMPDIR and /dev/shm?\n",
                StandsStill::kPatience.count());
      ::kill(-child, SIGKILL);
    }
    pass_on(out, err, kPoll);
  }
  pass_on_rest(out, err);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
}

/// Wrong options and files fail every time; only what died while it ran is worth another try.
bool died(int exit_code) {
  switch (static_cast<base::ErrorKind>(exit_code)) {
    case base::ErrorKind::kUsage:
    case base::ErrorKind::kInput:
    case base::ErrorKind::kNoPlan:
    case base::ErrorKind::kHardware:
    case base::ErrorKind::kInterrupted:
      return false;
    default:
      return exit_code != 0;
  }
}

/// A folder for the records of one attempt: the next of DIR/attempt-N that is not there yet, so that those of earlier
/// runs stay.
fs::path make_records(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  for (int number = 0; !error; ++number) {
    const fs::path records = folder / fmt::format("attempt-{}", number);
    if (fs::create_directory(records, error)) return records;
    if (error == std::errc::file_exists) error.clear();
  }
  throw base::Failure(base::ErrorKind::kUsage, fmt::format("--flight-record {}: cannot make the folder: {}",
                                                           base::one_line(folder.string()), error.message()));
}

/// Only a folder that holds a checkpoint can be gone on from; a run that died before its first one begins again.
bool holds_checkpoints(const std::string& folder) { return !folder.empty() && !checkpoint::list(folder).whole.empty(); }

}  // namespace

int supervise(const SupervisionOptions& options, const program::Program& program, const std::string& checkpoints,
              const std::stop_token& stop) {
  if (options.processes != program.mesh.size()) {
    throw base::Failure(base::ErrorKind::kUsage, fmt::format("the plan has {} ranks, --processes says {}",
                                                             program.mesh.size(), options.processes));
  }
  if (options.max_restarts > 0 && checkpoints.empty()) {
    throw base::Failure(base::ErrorKind::kUsage, "--max-restarts needs --checkpoint DIR to begin again from");
  }
  const fs::path shared_memory = "/dev/shm";
  Places::clear_up(shared_memory);
  Places places(shared_memory);
  const bool own_network = can_have_own_network();
  const bool keeps = !options.flight_record.empty();
  const fs::path folder = keeps ? fs::path(options.flight_record) : places.temporary.path() / "flight";
  for (int attempt = 0;; ++attempt) {
    const fs::path records = make_records(folder);
    const bool resume = attempt > 0 && holds_checkpoints(checkpoints);
    Relay out(STDOUT_FILENO), err(STDERR_FILENO);
    std::vector<std::pair<std::string, std::string>> variables = environment_of_ranks(records.string(), resume);
    for (const auto& variable : stay_on_loopback(places)) variables.push_back(variable);
    const pid_t child = start(rank_words(options, places), environment_with(variables), own_network, out, err);
    const int code = wait_for(child, records, stop, out, err);
    if (!died(code)) {
      out.require_whole();
      return code;
    }
    const std::vector<flight::Log> logs = flight::read_logs(records);
    const flight::Finding finding = flight::explain_death(program, logs);
    if (logs.empty()) {
      base::say("mpirun ended with code {} before any rank began\n", code);
    } else {
      base::say("the run died{}:\n{}",
                finding.culprits.empty() ? "" : fmt::format(" with rank {}", fmt::join(finding.culprits, ", ")),
                finding.text);
      base::say("{}\n", keeps ? "flight records: " + base::one_line(records.string())
                              : "note: --flight-record DIR keeps the records of the ranks");
    }
    if (attempt == options.max_restarts || stop.stop_requested()) return static_cast<int>(base::ErrorKind::kRuntime);
    base::say("note: beginning again at {} ({} of {})\n",
              holds_checkpoints(checkpoints) ? "the last checkpoint" : "step 0, as there is no checkpoint yet",
              attempt + 1, options.max_restarts);
  }
}

}  // namespace trivium::runtime::session
