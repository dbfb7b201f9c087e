// Parts of a plan that Megatron-LM, Megatron-DeepSpeed and Megatron-Bridge say in the same way.
#pragma once

#include "planner/launch/import_parts.h"

namespace trivium::planner::launch {

/// Tensor, pipeline, context, expert, micro-batch, and data from the processes. Errors: as Settings.
void read_split(Settings& settings, const ImportRequest& request, Imported& imported);
/// Layers of every chunk out of --pipeline-model-parallel-layout ("Et*5|(t*6|)*3t*4,mL"). Errors: as Settings, also
/// where modules of multi-token prediction (m) are not the model's, or not in the last part.
void read_layout(Settings& settings, const std::string& text, const models::Model& model, program::Plan& plan);
void read_recompute(Settings& settings, Imported& imported);
void read_precision(Settings& settings, Imported& imported);

}  // namespace trivium::planner::launch
