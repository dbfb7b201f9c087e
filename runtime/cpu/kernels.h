// The CPU backend's kernels.
#pragma once

#include "runtime/kernel.h"

namespace trivium::runtime::cpu {

/// The kernel for an op kind in fp32 or fp64; null for communication kinds and for types not executed on the CPU.
Kernel find_kernel(program::OpKind kind, program::DType type);

}  // namespace trivium::runtime::cpu
