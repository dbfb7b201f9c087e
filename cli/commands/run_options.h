// Options of `run` that keep what a training has reached, and that let it outlive its ranks.
#pragma once

#include <CLI/CLI.hpp>

#include "runtime/session/checkpointing.h"
#include "runtime/session/supervise.h"

namespace trivium::cli {

/// Adds --checkpoint, --checkpoint-every, --keep and --resume. `options` must outlive the parse.
void add_checkpoint_options(CLI::App& command, runtime::session::CheckpointOptions& options);

/// Adds --processes, --max-restarts, --flight-record and --deadline. `options` must outlive the parse.
void add_supervision_options(CLI::App& command, runtime::session::SupervisionOptions& options);

}  // namespace trivium::cli
