// Checks of the verifier that follow keys and values around a ring.
#pragma once

#include <string>
#include <vector>

#include "program/ir/program.h"

namespace trivium::program {

/// Every block of step k meets keys that were shifted k times, its gradient travels with them, and a gradient comes
/// home after as many shifts as the ring has ranks.
void check_rings(const Program& program, std::vector<std::string>& problems);

}  // namespace trivium::program
