// A training as processes, one a rank, watched over and started again.
#pragma once

#include <stop_token>
#include <string>

#include "program/ir/program.h"

namespace trivium::runtime::session {

struct SupervisionOptions {
  int processes = 0;  ///< 0: ranks are threads, or this is a process that mpirun started
  int max_restarts = 0;
  std::string flight_record;  ///< folder; empty: none, or with processes one that is removed at the end
  double deadline_s = 60;     ///< ranks give up when none of them moves for so long; 0: never
};

/// Starts this program again under mpirun, once a rank, with the arguments it was given, and waits. A run that dies is
/// explained from the flight records of its ranks, and started again from its last checkpoint as often as
/// `max_restarts` says. `stop` asks the ranks to stop; a checkpoint is then written where there is a folder for it,
/// `checkpoints` (empty: none). Ranks ask themselves to stop where this process ends before them. What they print is
/// passed on for as long as somebody takes it. Returns the exit code: that of the ranks, 1 where they died. Errors:
/// Failure(kUsage) for options that do not fit the program, Failure(kHardware) without mpirun.
int supervise(const SupervisionOptions& options, const program::Program& program, const std::string& checkpoints,
              const std::stop_token& stop);

}  // namespace trivium::runtime::session
