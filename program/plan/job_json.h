// Plans and trainings as JSON and, field by field, as text: what program/plan/fields.h tells.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/json_reader.h"
#include "program/plan/fields.h"
#include "program/plan/job.h"

namespace trivium::program {

nlohmann::json to_json(const Plan& plan);
nlohmann::json to_json(const Training& training);

/// Every member is optional and keeps its default; unknown members are refused with the nearest name.
/// Errors: Failure(kInput) with the JSON pointer.
Plan plan_from_json(const base::JsonReader& reader);
Training training_from_json(const base::JsonReader& reader);

/// Sets one field of a plan or training from text, as on the command line ("micro_batch", "4"); lists are separated by
/// commas, "overlap.…" and "offload.…" take their members; "micro_batch" is of all replicas, so that
/// "replica_micro_batch" is empty after it; "document_lengths" may be a file (read_document_lengths) and replaces the
/// weights. Errors: Failure(kUsage) naming the option, Failure(kInput) naming the file.
void set_field(Plan& plan, Training& training, const std::string& field, const std::string& text);

}  // namespace trivium::program
