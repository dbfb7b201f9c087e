// The CPU backend's kernels.
#pragma once

#include "runtime/kernel.h"

namespace trivium::runtime::cpu {

/// The kernel for an op kind in fp32, fp64, bf16 or fp16; null for communication kinds and for types of no arithmetic.
/// 16-bit kernels look up the types of their operands in `KernelArguments::kind`.
Kernel find_kernel(program::OpKind kind, program::DType type);

/// The kernel for an op whose main operand is of the type: a product in 8 bits reads other operands than its kind's.
Kernel kernel_of(const program::Op& op, program::DType type);

}  // namespace trivium::runtime::cpu
