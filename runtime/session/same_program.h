// Ranks that were started apart from each other do the same training.
#pragma once

#include "program/ir/program.h"
#include "runtime/communicator.h"

namespace trivium::runtime::session {

/// Every rank calls it with its program before the first step; ends all ranks where one has another program than rank
/// 0, as they would wait for each other for ever.
void check_same_program(Communicator& communicator, const program::Program& program);

}  // namespace trivium::runtime::session
