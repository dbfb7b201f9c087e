// The instruction sets that the hot kernels are compiled for, and which of them this processor runs.
#pragma once

#include "runtime/kernel.h"

namespace trivium::runtime::cpu {

enum class Variant {
  kV2,  ///< the compiler's default: runs everywhere
  kV3,  ///< AVX2 and FMA
  kV4   ///< AVX-512 F, DQ, VL, BW
};

/// Whether the variant was compiled in and this processor has its instructions.
bool available(Variant variant);

/// The variant in use: $TRIVIUM_CPU (v2, v3, v4) where set, else the widest available. Decided on the first call.
/// Errors: Failure(kUsage) for another name, Failure(kHardware) for a variant this processor cannot run.
Variant chosen_variant();

/// As find_kernel of kernels.h, from one variant, which must be available.
Kernel find_kernel(Variant variant, program::OpKind kind, program::DType type);

}  // namespace trivium::runtime::cpu
