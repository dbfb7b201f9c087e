#pragma once

#include <chrono>
#include <thread>

namespace trivium::runtime::cuda {

/// Waits between two questions of a loop that asks until something has come about. Short waits end at once: for the
/// first two milliseconds only the core is offered to other threads. From then on each pause is 50 microseconds, so
/// that long waits leave the core to whoever is waited for.
class Backoff {
 public:
  void pause() {
    constexpr auto kShort = std::chrono::milliseconds(2);
    constexpr auto kPause = std::chrono::microseconds(50);
    if (std::chrono::steady_clock::now() - since_ < kShort) return std::this_thread::yield();
    std::this_thread::sleep_for(kPause);
  }

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace trivium::runtime::cuda
