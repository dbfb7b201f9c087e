// What the CUDA backend does not run, decided without a device.
#pragma once

#include <string>

#include "program/ir/program.h"

namespace trivium::runtime::cuda {

/// Why no kernel runs the op in the program's types, or empty.
std::string refusal_of(const program::Program& program, const program::Op& op);

/// What of the program runs, but by kernels that are slow by design, with why and what to do; or empty. `has_tiles`:
/// whether the device has the tensor cores that fused attention needs, as from sm_80 on.
std::string slow_path_of(const program::Program& program, bool has_tiles);

}  // namespace trivium::runtime::cuda
