// Plans and trainings as JSON, and plan files.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "edge/json_reader.h"
#include "program/program.h"

namespace trivium::program {

nlohmann::json to_json(const Plan& plan);
nlohmann::json to_json(const Training& training);

/// Every member is optional and keeps its default; unknown members are refused with the nearest name.
/// Errors: Failure(kInput) with the JSON pointer.
Plan plan_from_json(const edge::JsonReader& reader);
Training training_from_json(const edge::JsonReader& reader);

/// Sets one field of a plan or training from text, as on the command line ("micro_batch", "4"); "stage_layers" takes
/// comma-separated numbers, "overlap.…" and "offload.…" their members; "micro_batch" is of all replicas, so that
/// "replica_micro_batch" is empty after it. Errors: Failure(kUsage) naming the option.
void set_field(Plan& plan, Training& training, const std::string& field, const std::string& text);

/// Names accepted by set_field, in order; those of the plan first.
const std::vector<std::string>& plan_fields();
const std::vector<std::string>& training_fields();

}  // namespace trivium::program
