// What the kernels of one rank take beyond the plan, and why.
#pragma once

#include <vector>

#include "calibration/foreign/explanation.h"
#include "calibration/foreign/plan_ops.h"
#include "calibration/foreign/rank_times.h"

namespace trivium::calibration::foreign {

/// Compute time of the rank beyond the plan, split into parts, none counted twice: work that is done again,
/// attention that is not fused, ops of many small kernels, products that all run below the profile's rate, and single
/// ops that are slow for their kind. On cores the profile describes other kernels than the run's, so only ops that are
/// slow compared with the run's own products are reported.
std::vector<Finding> compute_findings(const RankTimes& rank, const RankPlan& plan, bool on_cores, bool flash);

/// Measured over predicted time of the run's products at the median, weighted by what is predicted: how the device
/// compares with its profile. 1 where none is matched.
double pace_of(const RankTimes& rank, const RankPlan& plan);

}  // namespace trivium::calibration::foreign
