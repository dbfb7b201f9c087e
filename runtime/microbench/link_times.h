// Collectives and transfers between this machine's threads.
#pragma once

#include "hardware_profiles/hardware.h"

namespace trivium::runtime::microbench {

struct LinkTimes {
  hardware::Link link;   ///< as simulator/collectives reads it for cores of one machine; efficiency 1
  double fit_error = 0;  ///< mean relative error of the affine law
  edge::Seconds skew;    ///< mean wait of a rank at a tensor collective of a real training, over log2(ranks)
};

/// Needs two ranks or more.
LinkTimes time_links(int ranks, bool quick);

}  // namespace trivium::runtime::microbench
