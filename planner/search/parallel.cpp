#include "planner/search/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace trivium::planner {
namespace {

constexpr auto kWatchEvery = std::chrono::milliseconds(200);

// One after the other: starting a thread costs as much as many a piece.
bool run_here(std::size_t count, const std::stop_token& stop, const std::function<void(std::size_t)>& work,
              const std::function<void(std::size_t)>& watch) {
  auto watched = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    if (stop.stop_requested()) return false;
    work(i);
    if (const auto now = std::chrono::steady_clock::now(); now - watched >= kWatchEvery) {
      watch(i + 1);
      watched = now;
    }
  }
  return true;
}

}  // namespace

int threads_for(int asked) {
  return asked > 0 ? asked : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

bool run_parallel(std::size_t count, int threads, const std::stop_token& stop,
                  const std::function<void(std::size_t)>& work, const std::function<void(std::size_t)>& watch) {
  if (threads == 1) return run_here(count, stop, work, watch);
  std::atomic<std::size_t> next = 0, done = 0;
  std::atomic<bool> failed = false;
  std::exception_ptr failure;
  std::mutex mutex;
  std::condition_variable all_left;
  const std::size_t wanted =
      std::clamp<std::size_t>(static_cast<std::size_t>(threads), 1, std::max<std::size_t>(1, count));
  std::size_t running = 0;
  const auto pieces = [&] {
    try {
      for (std::size_t i = next++; i < count && !stop.stop_requested() && !failed; i = next++) {
        work(i);
        ++done;
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failed.exchange(true)) failure = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    if (--running == 0) all_left.notify_one();
  };
  {
    std::vector<std::jthread> workers;
    workers.reserve(wanted);
    while (workers.size() < wanted) {
      const std::lock_guard lock(mutex);
      try {
        workers.emplace_back(pieces);
      } catch (const std::system_error&) {
        break;  // the machine has no more threads: those that are there do the work
      }
      ++running;
    }
    if (workers.empty()) return run_here(count, stop, work, watch);
    std::unique_lock lock(mutex);
    while (!all_left.wait_for(lock, kWatchEvery, [&] { return running == 0; })) watch(done.load());
  }
  if (failure) std::rethrow_exception(failure);
  return done.load() == count;
}

}  // namespace trivium::planner
