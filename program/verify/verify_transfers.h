// Static checks of transfers between stages: what is sent is what is received, whole, before a pass reads it.
#pragma once

#include <string>
#include <vector>

#include "program/ir/program.h"

namespace trivium::program {

/// Adds a line for every transfer without its two ends, whose ends differ in size, stage or what they carry, whose
/// parts are not those of the tensor ranks, or that its pass does not wait for (of a send: that does not wait for its
/// pass); and for every received part that no gather follows before the pass.
void check_transfers(const Program& program, std::vector<std::string>& problems);

}  // namespace trivium::program
