// Products in 8 bits and fewer, and the casts before them.
#pragma once

#include "hardware_profiles/hardware.h"
#include "program/ir/op.h"
#include "program/plan/stack.h"
#include "simulator/cost/gemm.h"

namespace trivium::simulator {

hardware::Scaling scaling_of(program::Fp8 recipe);
hardware::Arithmetic arithmetic_of(program::Fp8 recipe);

/// Whether the device has arithmetic and measured rates for a recipe's products. Cores, which emulate them, have those
/// whose scales no step before decides.
bool has_fp8(const hardware::Device& device, program::Fp8 recipe);

/// Whether a GPU with fp8 that lacks a recipe's products runs it all the same: our own kernels read codes with scales
/// of blocks back to 16 bits before a product (runtime/cuda/ops_coded.h).
bool reads_codes_back(const hardware::Device& device, program::Fp8 recipe, const program::StackTraits& stack);

/// Time in which the operands of a product that reads codes back become numbers in 16 bits.
base::Seconds read_back_time(const program::Op& op, const hardware::Device& device);

/// Rates of a product whose result is of type `result`; `efficiency` multiplies the recipe's own, or that of the 16
/// bits to which codes are read back. The device must have the recipe, or read it back.
GemmRates fp8_rates(const hardware::Device& device, program::Fp8 recipe, program::DType result, double efficiency);

/// Time of a kQuantize op on a GPU.
base::Seconds cast_time(const program::Op& op, const hardware::Device& device);

}  // namespace trivium::simulator
