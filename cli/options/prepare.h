// From a job to a Program that may run: the checks every command passes in the same order.
#pragma once

#include <optional>
#include <stop_token>
#include <vector>

#include "cli/options/options.h"
#include "program/lower/lower.h"
#include "simulator/memory/memory.h"

namespace trivium::cli {

/// A job that passed every check, lowered, ordered and verified.
struct Prepared {
  program::Program program;
  std::vector<simulator::StageMemory> memory;
  std::optional<program::Infeasible> too_big;  ///< why it does not fit, where memory was to be ignored
};

/// Errors: Failure(kNoPlan) with the reason when the plan cannot be or, unless `ignore_memory`, does not fit;
/// Failure(kRuntime) when the Program deadlocks or is not sound; Failure(kInterrupted) when `stop` came while it was
/// put in order.
Prepared prepare(const JobRequest& request, bool ignore_memory, const std::stop_token& stop = {});

}  // namespace trivium::cli
