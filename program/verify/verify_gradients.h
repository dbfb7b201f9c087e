// Static checks of offloaded gradients: they are on the device when used, and stored when their slot is reused.
#pragma once

#include <string>
#include <vector>

#include "program/ir/program.h"

namespace trivium::program {

/// Follows the gradients kept of every bucket through the slots of its chunk and adds a line for every task that uses
/// gradients which nothing fetched or which have not arrived, for every copy that overwrites what is still used or not
/// yet stored, and for every change that is not stored.
void check_away_gradients(const Program& program, std::vector<std::string>& problems);

}  // namespace trivium::program
