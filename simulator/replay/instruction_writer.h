// The instructions of one role.
#pragma once

#include <vector>

#include "base/error.h"
#include "simulator/replay/replay_program.h"

namespace trivium::simulator {

/// Writes the instructions of a role (its place in the Program). `channels`: those known so far; new ones are added.
/// Errors: as `compiled`.
base::Result<InstructionStreams> write_instructions(const CostedProgram& costed, int role, const ReplayOptions& options,
                                                    std::vector<Channel>& channels);

}  // namespace trivium::simulator
