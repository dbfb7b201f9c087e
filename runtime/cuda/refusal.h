// What the CUDA backend does not run, decided without a device.
#pragma once

#include <string>

#include "program/ir/program.h"

namespace trivium::runtime::cuda {

/// Why no kernel runs the op in the program's types, or empty.
std::string refusal_of(const program::Program& program, const program::Op& op);

}  // namespace trivium::runtime::cuda
