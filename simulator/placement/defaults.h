// What a job takes for granted where it does not say.
#pragma once

#include "hardware_profiles/hardware.h"
#include "program/plan/dtype.h"
#include "program/plan/plan.h"

namespace trivium::simulator {

bool all_devices_are_cores(const hardware::Cluster& cluster);

/// The precision every device of the cluster does best: bf16, else fp16, else fp32; fp32 where there are CPUs.
program::DType best_precision(const hardware::Cluster& cluster);

/// Whether every device of the cluster and the plan's stack have fused attention kernels for the plan's precision: 16
/// bits on GPUs, any on cores.
bool has_fused_attention(const program::Plan& plan, const hardware::Cluster& cluster);

/// What trainers take where nothing is said: fused kernels where there are any, and for rings of cores, which run no
/// other.
program::Attention best_attention(const program::Plan& plan, const hardware::Cluster& cluster);

}  // namespace trivium::simulator
