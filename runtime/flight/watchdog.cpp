#include "runtime/flight/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <stop_token>

#include "runtime/flight/report.h"

namespace trivium::runtime::flight {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kTurn{300};  // between ranks that speak
constexpr milliseconds kLook{200};  // between two looks
constexpr double kMsPerSecond = 1000;
constexpr int kPatience = 10;  // reading and writing checkpoints notes nothing for long

std::uint64_t notes_of(const std::vector<Log>& logs) {
  return std::accumulate(logs.begin(), logs.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Log& log) { return sum + log.count; });
}

bool at_files(const std::vector<Log>& logs) {
  return std::any_of(logs.begin(), logs.end(), [](const Log& log) {
    return !log.entries.empty() &&
           (log.entries.back().doing == Doing::kCheckpoint || log.entries.back().doing == Doing::kStarting);
  });
}

}  // namespace

Watchdog::Watchdog(std::filesystem::path folder, const program::Program& program, int rank, milliseconds deadline,
                   std::function<void(const std::string&)> give_up) {
  thread_ = std::jthread([folder = std::move(folder), &program, rank, deadline,
                          give_up = std::move(give_up)](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    std::uint64_t seen = 0;
    auto since = steady_clock::now();
    while (!wake.wait_for(lock, stop, kLook, [&] { return stop.stop_requested(); })) {
      const std::vector<Log> logs = read_logs(folder);
      const std::uint64_t notes = notes_of(logs);
      const auto now = steady_clock::now();
      if (notes != seen) seen = notes, since = now;
      if (now - since < deadline * (at_files(logs) ? kPatience : 1) + rank * kTurn) continue;
      const Finding finding = explain_hang(program, logs);
      give_up(fmt::format("nothing moved for {:.1f} s:\n{}", static_cast<double>(deadline.count()) / kMsPerSecond,
                          finding.text));
      return;
    }
  });
}

}  // namespace trivium::runtime::flight
