// Why a simulation cannot proceed, in words.
#pragma once

#include <string>
#include <vector>

#include "simulator/replay/replay_engine.h"
#include "simulator/replay/replay_program.h"

namespace trivium::simulator {

/// One line: how many ranks are stuck and, for the first few that wait at a transfer or collective, the rank, its
/// instruction, and the partners that never came with what they are at. Precondition: something is blocked.
std::string why_stuck(const program::Program& program, const ReplayProgram& compiled,
                      const std::vector<Blocked>& blocked);

}  // namespace trivium::simulator
