// Options of `run` that keep what a training has reached.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/options/options.h"
#include "runtime/executor/course.h"
#include "runtime/executor/step_keeper.h"

namespace trivium::cli {

struct CheckpointOptions {
  std::string folder;  ///< empty: no checkpoints
  std::int64_t every = 0;
  std::int64_t keep = 2;
  bool resume = false;
  runtime::BatchRamp ramp;  ///< of the training; not an option of its own
};

/// Adds --checkpoint, --checkpoint-every, --keep and --resume. `options` must outlive the parse.
void add_checkpoint_options(CLI::App& command, CheckpointOptions& options);

/// What reads and writes the checkpoints of a job; nothing where there is no folder. Notes go to stderr.
runtime::KeeperFactory keepers_of(const CheckpointOptions& options, const JobRequest& request,
                                  std::int64_t corpus_tokens);

}  // namespace trivium::cli
