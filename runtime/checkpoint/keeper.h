// Checkpoints between the steps of a training.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "program/plan_file.h"
#include "runtime/executor/course.h"
#include "runtime/executor/step_keeper.h"

namespace trivium::runtime::checkpoint {

struct KeeperOptions {
  std::filesystem::path folder;
  std::int64_t every = 0;  ///< steps; 0: only behind the last one, however it came to be the last
  std::int64_t keep = 0;   ///< newest checkpoints that stay; 0: all
  bool resume = false;     ///< go on from the newest checkpoint, if there is one
  program::PlanFile job;
  BatchRamp ramp;  ///< how many samples the steps before a checkpoint had
  std::int64_t corpus_tokens = 0;
  std::function<void(const std::string&)> note;  ///< rank 0 tells what it found and wrote
};

/// Makes each rank's keeper. Where `resume` is not set and the folder holds checkpoints, the first call of `begin`
/// throws Failure(kUsage). Errors of `begin`: Failure(kInput) for a checkpoint of another training; of `after_step`:
/// Failure(kRuntime) where the disk is full and the like. All ranks throw the same.
KeeperFactory make_keepers(const KeeperOptions& options);

}  // namespace trivium::runtime::checkpoint
