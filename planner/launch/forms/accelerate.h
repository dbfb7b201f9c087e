// Parts of accelerate's YAML that a training script of Hugging Face needs as well.
#pragma once

#include <string>
#include <vector>

#include "planner/launch/import_parts.h"

namespace trivium::planner::launch::forms {

bool uses_deepspeed(Settings& settings);

/// DeepSpeed's JSON that the configuration names (`where` becomes its name) or implies. Errors: Failure(kInput) with
/// the line for a file that is not there.
std::string deepspeed_json_of(Settings& settings, const ImportRequest& request, std::string& where);

/// Split, sharding, precision, recomputation and offload; of Megatron-LM also the batch. The plan's micro-batch is
/// given. Precondition: the configuration does not use DeepSpeed. Errors: Failure(kInput) with the line.
void read_accelerate(Settings& settings, const ImportRequest& request, Imported& imported);

void lose_unread_of_accelerate(const Settings& settings, std::vector<Loss>& losses);

}  // namespace trivium::planner::launch::forms
