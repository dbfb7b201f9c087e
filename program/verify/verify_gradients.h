// Static checks of offloaded gradients: they are there when used, and away when their slot is another's.
#pragma once

#include <string>
#include <vector>

#include "program/ir/program.h"

namespace trivium::program {

/// Follows what is kept of every bucket's gradients through the slots of its chunk and adds a line for every task that
/// uses gradients which nothing brought or which did not arrive, for every copy that overwrites what is still used or
/// not yet away, and for every change that is not stored.
void check_away_gradients(const Program& program, std::vector<std::string>& problems);

}  // namespace trivium::program
