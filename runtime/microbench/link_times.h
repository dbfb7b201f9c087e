// Collectives and transfers between this machine's threads.
#pragma once

#include <vector>

#include "hardware_profiles/hardware.h"

namespace trivium::runtime::microbench {

struct LinkTimes {
  hardware::Link link;     ///< as simulator/collectives reads it for cores of one machine; efficiency 1
  double fit_error = 0;    ///< mean relative error of the affine law
  double spread = 0;       ///< of the repetitions of a size, from the tenth to the ninetieth of a hundred; their median
  base::Seconds skew;      ///< mean wait of a rank at a tensor collective of a real training, over log2(ranks)
  double skew_spread = 0;  ///< of the steps of that training
};

/// Seconds of an all-reduce of 16 KiB among this many threads, of every batch of calls. With more threads than cores
/// all but the last to arrive sleep, and are woken to take turns.
std::vector<double> time_small_all_reduces(int threads, bool quick);

/// Needs two ranks or more.
LinkTimes time_links(int ranks, bool quick);

}  // namespace trivium::runtime::microbench
