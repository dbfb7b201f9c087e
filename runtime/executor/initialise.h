// First values of the parameters, the same whatever the layout.
#pragma once

#include "program/program.h"
#include "runtime/executor/arenas.h"

namespace trivium::runtime {

/// Every element's value is a function of (seed, global name, global row, global column) alone: normal(0, init_std) by
/// Box-Muller over a counter hash (SplitMix64: Steele et al. 2014, OOPSLA), or the parameter's constant. Padding is 0.
void initialise_parameters(const program::Program& program, const program::Role& role, int tensor_rank, int shard_rank,
                           int expert_rank, Arenas& arenas);

}  // namespace trivium::runtime
