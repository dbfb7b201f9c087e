// First values of the parameters, the same whatever the layout.
#pragma once

#include "program/ir/program.h"
#include "runtime/executor/arenas.h"

namespace trivium::runtime {

/// Every element's value is a function of (seed, global name, global row, global column) alone: normal(0, init_std) by
/// Box-Muller over a counter hash (SplitMix64: Steele et al. 2014, OOPSLA), or the parameter's constant. Padding is 0.
/// With 16-bit parameters the optimizer's fp32 copies are set too, from the same draw. `arenas` are of the backend, and
/// zero: its lanes are done when this returns.
void initialise_parameters(const program::Program& program, int rank, Backend& backend, Arenas& arenas);

}  // namespace trivium::runtime
