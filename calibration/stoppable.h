// Validations for callers who may lose interest: they end soon after they are asked to, without a result.
#pragma once

#include <stop_token>

#include "calibration/validate.h"

namespace trivium::calibration {

/// As without `stop`; Failure(kInterrupted) where it was asked for.
Validation validate_run(const program::PlanFile& plan, const program::RunRecord& record,
                        const hardware::Cluster& cluster, const std::stop_token& stop);

}  // namespace trivium::calibration
