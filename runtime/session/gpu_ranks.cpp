#include "runtime/session/gpu_ranks.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/say.h"
#include "runtime/cuda/loader.h"
#include "runtime/inproc/threads.h"
#include "runtime/nccl/launch.h"
#include "runtime/session/same_program.h"

namespace trivium::runtime::session {
namespace {

using nccl::Launch;

std::optional<Launch> launch_of_process() {
  return nccl::read_launch([](const char* name) -> const char* { return std::getenv(name); }).value_or_throw();
}

/// A port of the loopback interface that nobody has now.
int free_port() {
  const int handle = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = handle >= 0 && ::bind(handle, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::getsockname(handle, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (handle >= 0) ::close(handle);
  if (!bound) throw base::Failure(base::ErrorKind::kRuntime, "no free port on the loopback interface");
  return ntohs(address.sin_port);
}

/// The words of this process's command line.
std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size(); at += words.back().size() + 1) words.emplace_back(text.c_str() + at);
  return words;
}

/// The environment of the ranks. They inherit it; only the rank differs.
void set_variable(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

pid_t start(int rank, std::vector<std::string>& words) {
  set_variable("TRIVIUM_RANK", std::to_string(rank));
  set_variable("TRIVIUM_LOCAL_RANK", std::to_string(rank));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) throw base::Failure(base::ErrorKind::kRuntime, "cannot start the processes of the ranks");
  if (child == 0) {
    // In a group of its own: Ctrl-C then reaches the parent alone, whose signal asks once for an end with a checkpoint.
    // A second signal would end the rank at once, and without the parent nobody would ask.
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(static_cast<int>(base::ErrorKind::kInterrupted));  // it ended before that
    ::execv("/proc/self/exe", arguments.data());
    ::_exit(static_cast<int>(base::ErrorKind::kRuntime));
  }
  return child;
}

/// A process that a signal ended says nothing itself, and the others only that nothing comes.
void tell_of_signal(int rank, pid_t process, int signal) {
  base::say("rank {} (process {}) was ended by signal {} ({})\n", rank, process, signal, ::strsignal(signal));
}

}  // namespace

bool started_as_rank() { return launch_of_process().has_value(); }

GpuRank open_gpu_rank(const GpuRankOptions& options) {
  Launch launch = launch_of_process().value_or(Launch{});
  const int present = static_cast<int>(cuda::describe_devices().value_or_throw().size());
  const int gpus = options.gpus;
  if (gpus > present) {
    throw base::Failure(base::ErrorKind::kHardware, fmt::format("--gpus {}: there are {} here", gpus, present));
  }
  launch.devices = gpus > 0 ? gpus : present;
  GpuRank rank;
  const int device = launch.local_rank % launch.devices;
  cuda::DeviceOptions how = options.device;
  how.rank = launch.rank;
  auto opened = cuda::open_device(device, how);
  if (!opened && options.events_will_do) {
    if (launch.rank == 0) base::say("note: ops are timed by events: {}\n", opened.error().message);
    how.kernel_records = false;
    opened = cuda::open_device(device, how);
  }
  rank.timing = how.kernel_records ? "cupti" : "events";
  rank.backend = std::move(opened).value_or_throw();
  if (launch.size == 1) {
    rank.communicator = std::move(inproc::make_communicators(1).front());
  } else {
    rank.communicator = cuda::connect_nccl(*rank.backend, launch).value_or_throw();
    // Other algorithms may give other bits, where ranks that compute the same must agree.
    if (!how.products.empty()) check_same_files(*rank.communicator, how.products, ".products");
  }
  return rank;
}

int start_ranks(int ranks, const std::stop_token& stop) {
  constexpr auto kPause = std::chrono::milliseconds(50);
  constexpr auto kGrace = std::chrono::seconds(20);  // who waits for a rank that is gone may not hear a signal
  static_cast<void>(cuda::describe_devices().value_or_throw());  // told once, not by every rank
  set_variable("TRIVIUM_RANKS", std::to_string(ranks));
  set_variable("TRIVIUM_LOCAL_RANKS", std::to_string(ranks));
  set_variable("TRIVIUM_JOB_TOKEN", nccl::draw_token().value_or_throw());
  set_variable("MASTER_ADDR", "127.0.0.1");
  set_variable("MASTER_PORT", std::to_string(free_port()));
  std::vector<std::string> words = own_command();
  std::map<pid_t, int> running;
  for (int rank = 0; rank < ranks; ++rank) running[start(rank, words)] = rank;
  int result = 0;
  bool told = false, killed = false;
  std::chrono::steady_clock::time_point failed{};
  while (!running.empty()) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, WNOHANG);
    if (const auto rank = running.find(ended); rank != running.end()) {
      const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      const bool is_ours = (told && signal == SIGTERM) || (killed && signal == SIGKILL);
      if (signal != 0 && !is_ours) tell_of_signal(rank->second, ended, signal);
      running.erase(rank);
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(base::ErrorKind::kRuntime);
      if (result == 0 && code != 0) failed = std::chrono::steady_clock::now();
      if (result == 0) result = code;
      continue;
    }
    if ((result != 0 || stop.stop_requested()) && !told) {
      told = true;
      for (const auto& [child, rank] : running) ::kill(child, SIGTERM);
    }
    if (result != 0 && std::chrono::steady_clock::now() - failed > kGrace) {
      killed = true;
      for (const auto& [child, rank] : running) ::kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(kPause);
  }
  return result;
}

}  // namespace trivium::runtime::session
