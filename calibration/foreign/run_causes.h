// What costs all ranks time, each by evidence of its own.
#pragma once

#include <vector>

#include "calibration/foreign/sides.h"

namespace trivium::calibration::foreign {

/// Iterations unlike the others: a checkpoint that is written, an evaluation that runs. Seconds are spread over all.
std::vector<Finding> rare_steps(const Sides& sides);

/// Forwards that run again below the backward. Whether a plan asked for it is the caller's to say.
std::vector<Finding> recomputation(const Sides& sides);

/// Many small collectives: metrics, logging, norms one by one.
std::vector<Finding> small_collectives(const Sides& sides);

/// Stages of a pipeline that differ in layers, and the time that its schedule leaves empty.
std::vector<Finding> pipeline_causes(const Sides& sides);

}  // namespace trivium::calibration::foreign
