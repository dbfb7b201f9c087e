#include "planner/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
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
  std::mutex mutex;
  std::condition_variable all_left;
  std::size_t running = std::clamp<std::size_t>(static_cast<std::size_t>(threads), 1, std::max<std::size_t>(1, count));
  {
    std::vector<std::jthread> workers;
    for (std::size_t w = running; w > 0; --w) {
      workers.emplace_back([&] {
        for (std::size_t i = next++; i < count && !stop.stop_requested(); i = next++) {
          work(i);
          ++done;
        }
        const std::lock_guard lock(mutex);
        if (--running == 0) all_left.notify_one();
      });
    }
    std::unique_lock lock(mutex);
    while (!all_left.wait_for(lock, kWatchEvery, [&] { return running == 0; })) watch(done.load());
  }
  return done.load() == count;
}

}  // namespace trivium::planner
