// Loops that end when nobody waits for their result any more.
#pragma once

#include <cstdint>
#include <stop_token>
#include <utility>

#include "base/error.h"

namespace trivium::base {

/// Looks at a stop token now and then while a loop goes on. Errors of both: Failure(kInterrupted) where a stop was
/// asked for. Of one thread.
class CancellationPoint {
 public:
  static constexpr std::uint32_t kStepsBetweenLooks = 4096;  ///< light ones: a millisecond or two in all

  explicit CancellationPoint(std::stop_token stop) : stop_(std::move(stop)) {}

  /// One step of a loop.
  void step() {
    if (++steps_ % kStepsBetweenLooks == 0) look();
  }
  /// Between two parts of the work.
  void look() const {
    if (stop_.stop_requested()) throw Failure(ErrorKind::kInterrupted, "given up before it was done");
  }

 private:
  std::stop_token stop_;
  std::uint32_t steps_ = 0;
};

}  // namespace trivium::base
