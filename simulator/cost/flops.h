// Work of one iteration and the peak of the devices that do it, in FLOPs.
#pragma once

#include "hardware_profiles/hardware.h"
#include "program/plan/job.h"

namespace trivium::simulator {

/// Dense peak of one device in the plan's precision (mean over the devices it uses), FLOP/s.
double peak_flops(const program::Plan& plan, const hardware::Cluster& cluster);

/// FLOPs of one iteration over all ranks: what the model asks for, and what the hardware does with recomputation.
struct IterationFlops {
  double model = 0, hardware = 0;
};
IterationFlops iteration_flops(const program::Job& job);

}  // namespace trivium::simulator
