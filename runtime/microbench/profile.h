// What this machine can do: its cores' kernels and its threads' collectives, timed.
#pragma once

#include <functional>
#include <string>

#include "hardware_profiles/hardware.h"

namespace trivium::runtime {

struct ProfileOptions {
  bool quick = false;  ///< fewer shapes and repetitions: under 20 s instead of under 2 min
  int ranks = 0;       ///< threads that run at once, as ranks of a training will; 0: all cores
  std::function<void(const std::string&)> progress;  ///< called from the caller's thread, one line each
};

/// Times every kernel on shapes of small GPTs with all ranks busy, and collectives between them, and fits a node named
/// "this-machine" whose devices are this many cores. Errors: Failure(kUsage) for a negative or too large `ranks`.
hardware::Node profile_this_machine(const ProfileOptions& options);

/// What to tell whose machine did something else meanwhile: single times of its products of matrices lie too far apart
/// for any figure to be its own. Empty where they do not.
std::string doubt_about(const hardware::Node& measured);

}  // namespace trivium::runtime
