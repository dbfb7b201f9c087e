// Measured kernels as the rates of a profile.
#pragma once

#include <string>

#include "hardware_profiles/hardware.h"
#include "runtime/microbench/kernel_times.h"

namespace trivium::runtime::microbench {

/// Fits `device.op_rates` to the times, kind by kind, each with its spread and its source: `from`.
void set_rates(hardware::Node& node, const KernelTimes& times, const std::string& from);

}  // namespace trivium::runtime::microbench
