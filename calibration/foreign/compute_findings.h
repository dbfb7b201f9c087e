// What the kernels of one rank take beyond the plan, and why.
#pragma once

#include <vector>

#include "calibration/foreign/explanation.h"
#include "calibration/foreign/plan_ops.h"
#include "calibration/foreign/rank_times.h"

namespace trivium::calibration::foreign {

/// Parts of what the rank computes that are beyond the plan, none counted twice: work that is done again, attention
/// that is not fused, ops of many small kernels, products that all run below the profile's rate, and single ops that
/// are slow for their like. On cores the profile is of other kernels than the run's, so that only ops that are slow
/// beside the run's own products are told.
std::vector<Finding> compute_findings(const RankTimes& rank, const RankPlan& plan, bool on_cores, bool flash);

/// Measured over predicted time of the run's products at the median, weighted by what is predicted: how the device
/// compares with its profile. 1 where none is matched.
double pace_of(const RankTimes& rank, const RankPlan& plan);

}  // namespace trivium::calibration::foreign
