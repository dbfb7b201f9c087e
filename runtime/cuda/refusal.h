// What the CUDA backend does not run, decided without a device.
#pragma once

#include <string>

#include "program/ir/program.h"
#include "runtime/cuda/gemm.h"

namespace trivium::runtime::cuda {

/// Why no kernel runs the op in the program's types, or empty.
std::string refusal_of(const program::Program& program, const program::Op& op);

/// What of the program runs, but by kernels that are slow by design, with why and what to do; or empty. `has_tiles`:
/// whether the device has the tensor cores that fused attention needs, as from sm_80 on.
std::string slow_path_of(const program::Program& program, bool has_tiles);

/// What is said where the program's products in 8 bits are of the numbers that codes stand for, in 16 bits, as the
/// device has no others; or empty.
std::string read_back_of(const program::Program& program, ScaledProducts scaled);

}  // namespace trivium::runtime::cuda
