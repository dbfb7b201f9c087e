// The script of one role.
#pragma once

#include <vector>

#include "base/error.h"
#include "simulator/replay/cast.h"

namespace trivium::simulator {

/// Writes the script of a role (its place in the Program). `channels`: those known so far; new ones are added. Errors:
/// as `cast`.
base::Result<Script> write_script(const CostedProgram& costed, int role, const CastOptions& options,
                                  std::vector<Channel>& channels);

}  // namespace trivium::simulator
