// Passes that take turns: who with whom, and that neither is in the other's way.
#pragma once

#include <string>
#include <vector>

#include "program/ir/program.h"

namespace trivium::program {

/// A backward alternates with the forward of another micro-batch before it, and no forward with two. Of passes that
/// have begun and not ended, in the order of the compute lane or of the host, no two use the same workspace; a segment
/// comes after those of its own body that it waits for.
void check_pairs(const Program& program, std::vector<std::string>& problems);

}  // namespace trivium::program
