// Checkpoints between the steps of a training.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "program/plan/plan_file.h"
#include "runtime/executor/step_checkpointer.h"
#include "runtime/executor/training_schedule.h"

namespace trivium::runtime::checkpoint {

struct CheckpointerOptions {
  std::filesystem::path folder;
  std::int64_t every = 0;  ///< steps; 0: only after the last one, however it came to be the last
  std::int64_t keep = 0;   ///< newest checkpoints that stay; 0: all
  bool resume = false;     ///< go on from the newest checkpoint, if there is one
  program::PlanFile job;
  BatchRamp ramp;  ///< how many samples the steps before a checkpoint had
  std::int64_t corpus_tokens = 0;
  std::function<void(const std::string&)> note;  ///< rank 0 tells what it found and wrote
};

/// Makes each rank's checkpointer. The folder is theirs alone (FolderLock) from the first `begin` until the factory
/// goes. Errors of `begin`: Failure(kUsage) where `resume` is not set and the folder holds checkpoints, or another run
/// writes to it; Failure(kInput) where `resume` is set and there is no folder, or of the checkpoints in it none is
/// whole (an empty folder is where a training begins), and for a checkpoint of another training; Failure(kRuntime)
/// where the folder cannot be written. Of `after_step`: Failure(kRuntime) where the disk is full and the like. All
/// ranks throw the same.
CheckpointerFactory make_checkpointers(const CheckpointerOptions& options);

}  // namespace trivium::runtime::checkpoint
