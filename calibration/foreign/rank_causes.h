// What makes one rank slower than the others, each by evidence of its own.
#pragma once

#include <vector>

#include "calibration/foreign/sides.h"

namespace trivium::calibration::foreign {

/// Stalls of the loader, garbage collection, hosts that launch late, more tokens or experts, work that the others do
/// not have, and the same work done more slowly. Each repeats in most iterations, and others wait for the rank.
/// Seconds of one rank do not overlap.
std::vector<Finding> rank_causes(const Sides& sides);

/// What stalls every rank at once: the loader of all.
std::vector<Finding> shared_stalls(const Sides& sides);

}  // namespace trivium::calibration::foreign
