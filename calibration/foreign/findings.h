// What costs time in a foreign run, from what its ranks did and what the plan has them do.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calibration/foreign/explanation.h"
#include "calibration/foreign/plan_ops.h"
#include "calibration/foreign/rank_times.h"

namespace trivium::calibration::foreign {

struct Compared {
  const std::vector<RankTimes>& ranks;
  const std::map<int, RankPlan>& plans;
  bool on_cores = false;          ///< the profile is of other kernels than the run's: only shares of it count
  bool flash = false;             ///< the plan's attention is one kernel
  std::vector<Finding> causes{};  ///< what the traces tell without a plan
  bool in_stages = false;         ///< ranks are stages of a pipeline, which wait for each other by design
};

/// The rank whose iteration the findings divide: the one in the middle by its compute, or the faster of two, of those
/// that the plan gives most to compute.
const RankTimes& typical_rank(const Compared& compared);

/// Worst first; what costs less than half a percent of the iteration is left out. Parts of the typical rank's
/// iteration: what it computes beyond the plan, what it waits for whom, what collectives expose, and where it idles. No
/// second counts twice.
std::vector<Finding> findings_of(const Compared& compared);

}  // namespace trivium::calibration::foreign
