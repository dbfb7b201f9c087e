// What a training loses when its memory is all but full.
#pragma once

#include "hardware_profiles/hardware.h"
#include "program/ir/program.h"

namespace trivium::simulator {

/// Factor on the iteration, 1 where the stack's allocator has room. Stacks that allocate parameters and gradients unit
/// by unit (`StackTraits::crowded_above`: FSDP) leave holes, of one unit's parameters by this rule. Where the rest does
/// not reach, PyTorch's caching allocator frees what it has cached and asks the driver again, and each time waits for
/// the device (PyTorch, CUDA semantics, "Memory management"; `num_alloc_retries`). Linear in what is missing. Source:
/// five runs of LLM Foundry without room, 12 to 33 % slower than the ninety with room say.
double crowding(const program::Program& program, const hardware::Cluster& cluster);

}  // namespace trivium::simulator
