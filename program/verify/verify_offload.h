// Whether what is kept outside the device is there when it is used.
#pragma once

#include <string>
#include <vector>

#include "program/ir/program.h"

namespace trivium::program {

/// Adds a line for every backward of a layer whose activations are not in their slot or not waited for, every copy that
/// does not wait for what it reads or what still uses its slot, and every bucket whose AdamW does not wait for its
/// state or whose state does not go back.
void check_offload(const Program& program, std::vector<std::string>& problems);

}  // namespace trivium::program
