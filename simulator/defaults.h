// What a job takes for granted where it does not say.
#pragma once

#include "hardware_profiles/hardware.h"
#include "program/dtype.h"

namespace trivium::simulator {

/// The precision every device of the cluster does best: bf16, else fp16, else fp32; fp32 where there are CPUs.
program::DType best_precision(const hardware::Cluster& cluster);

}  // namespace trivium::simulator
