// The iteration of a plan as a picture: what the compute lane of every stage does.
#pragma once

#include <string>

#include "program/ir/program.h"
#include "program/ir/timeline.h"

namespace trivium::report {

/// A row a stage (of many stages those evenly apart), 800 columns; a column shows what takes most of its time: forward,
/// backward, the second half of a split backward, optimizer, or idle. `timeline`: of one rank a stage at least, from 0
/// to `iteration_ps` > 0.
std::string timeline_chart(const program::Program& program, const program::Timeline& timeline,
                           std::int64_t iteration_ps);

}  // namespace trivium::report
