// What is kept of a training that was done: its run record.
#pragma once

#include <string>

#include "program/ir/program.h"
#include "program/plan/plan_file.h"
#include "program/record/run_record.h"
#include "runtime/executor/train.h"

namespace trivium::runtime::session {

/// What the ranks were.
enum class Ranks {
  kThreads,    ///< threads of one process, on cores
  kProcesses,  ///< processes under MPI, on cores
  kGpus        ///< processes, a GPU each
};

/// The record of what `result` holds, with what is known of this host. `timing`: with GPUs, how ops were timed.
program::RunRecord record_of(const program::PlanFile& job, const program::Program& program, TrainResult result,
                             Ranks ranks, const std::string& timing);

}  // namespace trivium::runtime::session
