// A measured job on other constants of its machine: what fits ask again and again.
#pragma once

#include "base/error.h"
#include "hardware_profiles/hardware.h"
#include "program/plan/job.h"

namespace trivium::calibration {

/// Seconds of one iteration on the cluster with `node` for the nodes of its first group, as simulator::predict() finds
/// it. What was measured did run, so the job need not fit. Safe to call from several threads. Errors: as predict().
base::Result<double> predict_on(const program::Job& job, hardware::Cluster cluster, const hardware::Node& node);

}  // namespace trivium::calibration
