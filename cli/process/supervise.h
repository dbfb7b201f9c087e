// `run --processes`: a process a rank, watched over and started again.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <string>

#include "cli/process/interrupts.h"
#include "program/ir/program.h"

namespace trivium::cli {

struct SurvivalOptions {
  int processes = 0;  ///< 0: ranks are threads, or this is a process that mpirun started
  int max_restarts = 0;
  std::string flight_record;  ///< folder; empty: none, or with processes one that is removed at the end
  double deadline_s = 60;
};

/// Adds --processes, --max-restarts, --flight-record and --deadline. `options` must outlive the parse.
void add_survival_options(CLI::App& command, SurvivalOptions& options);

/// Starts this program again under mpirun, once a rank, with the arguments it was given, and waits. A run that dies is
/// explained from the flight records of its ranks, and started again from its last checkpoint as often as
/// `max_restarts` says. SIGINT asks the ranks to stop; a checkpoint is then written where there is a folder for it,
/// `checkpoints` (empty: none). Ranks ask themselves to stop where this process ends before them. What they print is
/// passed on for as long as somebody takes it. Returns the exit code: that of the ranks, 1 where they died. Errors:
/// Failure(kHardware) without mpirun.
int supervise(const SurvivalOptions& options, const program::Program& program, const std::string& checkpoints,
              const Interrupts& interrupts);

}  // namespace trivium::cli
