// The parts of the verifier that look at what runs when.
#pragma once

#include <string>
#include <vector>

#include "program/ir/program.h"

namespace trivium::program {

/// Temporaries that live at the same op must not share memory.
void check_temporaries(const Program& program, std::vector<std::string>& problems);

/// Collectives whose members sit on several stages: the same sequence of kind and size on each of them.
void check_joint_collectives(const Program& program, std::vector<std::string>& problems);

/// Kahn's algorithm over segments of all stages; the two ends of a transfer, and the members of a collective that joins
/// stages, are one node.
void check_order(const Program& program, std::vector<std::string>& problems);

}  // namespace trivium::program
