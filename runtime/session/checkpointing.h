// Which checkpoints a training keeps, and where.
#pragma once

#include <cstdint>
#include <string>

#include "program/plan/plan_file.h"
#include "runtime/executor/step_checkpointer.h"
#include "runtime/executor/training_schedule.h"

namespace trivium::runtime::session {

struct CheckpointOptions {
  std::string folder;      ///< empty: no checkpoints
  std::int64_t every = 0;  ///< steps from one to the next; 0: the last step alone
  std::int64_t keep = 2;   ///< how many of the newest stay; 0: all
  bool resume = false;     ///< go on from the newest
};

/// What reads and writes the checkpoints of a job; nothing where there is no folder. Notes go to stderr.
CheckpointerFactory checkpointers_of(const CheckpointOptions& options, const BatchRamp& ramp,
                                     const program::PlanFile& job, std::int64_t corpus_tokens);

}  // namespace trivium::runtime::session
