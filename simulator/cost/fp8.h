// Products in 8 bits and fewer, and the casts before them.
#pragma once

#include "hardware_profiles/hardware.h"
#include "program/ir/op.h"
#include "simulator/cost/gemm.h"

namespace trivium::simulator {

hardware::Scaling scaling_of(program::Fp8 recipe);
hardware::Arithmetic arithmetic_of(program::Fp8 recipe);

/// Whether the device has arithmetic and measured rates for a recipe's products. Cores, which emulate them, have those
/// whose scales no step before decides.
bool has_fp8(const hardware::Device& device, program::Fp8 recipe);

/// Rates of a product whose result is of type `result`; `efficiency` multiplies the recipe's own. The device must have
/// the recipe.
GemmRates fp8_rates(const hardware::Device& device, program::Fp8 recipe, program::DType result, double efficiency);

/// Time of a kQuantize op on a GPU.
base::Seconds cast_time(const program::Op& op, const hardware::Device& device);

}  // namespace trivium::simulator
