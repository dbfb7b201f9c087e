// From times of shapes to the rates of an op kind.
#pragma once

#include <span>

#include "hardware_profiles/hardware.h"
#include "runtime/microbench/kernel_times.h"

namespace trivium::runtime::microbench {

/// overhead + flops · a + bytes · b + blocks · c with the least sum of squared relative errors, every term at least
/// zero. Columns that no shape has stay zero. `spread` is left to the caller.
hardware::OpRate fit_rate(std::span<const ShapeTime> shapes);

}  // namespace trivium::runtime::microbench
