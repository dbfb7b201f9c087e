// What a training loses when its memory is all but full.
#pragma once

#include <cstdint>
#include <span>

#include "program/ir/program.h"
#include "simulator/memory/memory.h"

namespace trivium::simulator {

/// Factor on the iteration, 1 where the stack's allocator has room. Stacks that allocate parameters and gradients unit
/// by unit (`StackTraits::crowded_above`: FSDP) leave holes, of one unit's parameters by this rule. Where the rest does
/// not reach, PyTorch's caching allocator frees what it has cached and asks the driver again, and each time waits for
/// the device (PyTorch, CUDA semantics, "Memory management"; `num_alloc_retries`). Linear in what is missing. Source:
/// five runs of LLM Foundry without room, 12 to 33 % slower than the ninety with room say. `memory`: of the program's
/// roles.
double crowding(const program::Program& program, std::span<const StageMemory> memory);

/// The iteration of a program whose makespan was simulated (ps): the makespan, and what the allocator adds to it. Every
/// predicted time of an iteration goes through here.
std::int64_t iteration_of_makespan(std::int64_t makespan_ps, const program::Program& program,
                                   std::span<const StageMemory> memory);

}  // namespace trivium::simulator
