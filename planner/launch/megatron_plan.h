// Parts of a plan that Megatron-LM and Megatron-DeepSpeed say with the same flags.
#pragma once

#include "planner/launch/import_parts.h"

namespace trivium::planner::launch {

/// Tensor, pipeline, context, expert, micro-batch, and data from the processes. Errors: as Settings.
void read_split(Settings& settings, const ImportRequest& request, Imported& imported);
void read_recompute(Settings& settings, Imported& imported);
void read_precision(Settings& settings, Imported& imported);

}  // namespace trivium::planner::launch
