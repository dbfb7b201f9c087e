// Static checks of frames: what a micro-batch keeps stays until its last task has run.
#pragma once

#include <string>
#include <vector>

#include "program/ir/program.h"

namespace trivium::program {

/// Adds a line for every task that takes a frame which another micro-batch still needs, runs in another frame than its
/// micro-batch's, or receives into a frame without waiting for the last pass that read it.
void check_frames(const Program& program, std::vector<std::string>& problems);

}  // namespace trivium::program
