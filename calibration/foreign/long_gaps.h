// Stretches in which a rank stands still, and where in an iteration they lie.
#pragma once

#include <vector>

#include "calibration/foreign/rank_times.h"

namespace trivium::calibration::foreign {

/// Those of `gaps` that take more than a hundredth of their iteration and a millisecond, in order of time.
std::vector<Gap> long_gaps_of(const RankRun& run, const Intervals& gaps);

}  // namespace trivium::calibration::foreign
