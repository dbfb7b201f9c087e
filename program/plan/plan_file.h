// Plan files: a job and the cluster it is for, in one file that every command takes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "program/plan/job.h"

namespace trivium::program {

/// Schema `trivium.plan/1`. The cluster stays JSON here (a text like "dgx-a100-80gb:128", or an object): hardware is
/// read by those who know it.
struct PlanFile {
  Job job;
  nlohmann::json cluster;
};

/// Reads `trivium.plan/1` or `trivium.plan-result/1` (its `best`). Errors: Failure(kInput).
PlanFile read_plan_file(const std::string& path);
PlanFile plan_file_from_json(const nlohmann::json& json, const std::string& where);
/// The model stands in the file whole, so that the file means the same everywhere.
nlohmann::json to_json(const PlanFile& file);

}  // namespace trivium::program
