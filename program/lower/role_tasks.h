// The tasks of a stage: its schedule with transfers, gradient reduction, optimizer and gathers, and what waits for
// what.
#pragma once

#include "program/ir/program.h"

namespace trivium::program {

/// Fills `role.tasks` and the frames of its chunks. `role.chunks` must name kinds and positions; `program.kinds` and
/// `program.bodies` must be complete.
void add_tasks(const Program& program, Role& role);

/// Lays the chunks' parts of every space one after the other and totals them.
void lay_out_memory(const Program& program, Role& role);

}  // namespace trivium::program
