#include "runtime/session/supervisor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

namespace trivium::runtime::session {
namespace {

constexpr const char* kSupervisor = "TRIVIUM_SUPERVISOR";
constexpr const char* kFlightRecord = "TRIVIUM_SUPERVISOR_FLIGHT_RECORD";
constexpr const char* kResume = "TRIVIUM_SUPERVISOR_RESUME";

/// Of /proc/PID/stat (proc(5)): the parent, field 4, and the start, field 22.
struct Stat {
  int parent = 0;
  std::uint64_t start = 0;
};

Stat stat_of(int process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(file, line);
  // "pid (name) state ppid …": the name may hold anything, so the last bracket counts.
  const std::size_t bracket = line.rfind(')');
  if (bracket == std::string::npos) return {};
  std::istringstream fields(line.substr(bracket + 1));
  Stat stat;
  std::string state, skipped;
  fields >> state >> stat.parent;
  for (int field = 5; field < 22; ++field) fields >> skipped;
  fields >> stat.start;
  const bool lives = fields && state != "Z" && state != "X";  // a zombie only waits to be asked for its exit code
  return lives ? stat : Stat{};
}

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::uint64_t start_of_process(int process) { return stat_of(process).start; }

bool has_children(int process) {
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), error)) {
    std::ifstream file(thread.path() / "children");
    if (!file) return true;
    for (int child = 0; file >> child;) {
      if (start_of_process(child) != 0) return true;
    }
  }
  return false;
}

bool descends_from(int process, int ancestor) {
  while (process > 1 && process != ancestor) process = stat_of(process).parent;
  return process == ancestor && process > 1;
}

Supervisor Supervisor::of_this_process() {
  Supervisor supervisor;
  const std::string_view text = variable(kSupervisor);
  const char* const end = text.data() + text.size();
  const auto process = std::from_chars(text.data(), end, supervisor.process_);
  if (process.ec != std::errc() || process.ptr == end || *process.ptr != ':') return {};
  const auto start = std::from_chars(process.ptr + 1, end, supervisor.start_);
  if (start.ec != std::errc() || start.ptr != end) return {};
  supervisor.flight_record_ = variable(kFlightRecord);
  supervisor.resume_ = variable(kResume) == std::string_view("1");
  return supervisor;
}

bool Supervisor::is_gone() const { return exists() && start_of_process(process_) != start_; }

std::vector<std::pair<std::string, std::string>> environment_of_ranks(const std::string& flight_record, bool resume) {
  return {{kSupervisor, fmt::format("{}:{}", ::getpid(), start_of_process(::getpid()))},
          {kFlightRecord, flight_record},
          {kResume, resume ? "1" : "0"}};
}

}  // namespace trivium::runtime::session
