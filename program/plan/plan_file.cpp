#include "program/plan/plan_file.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/quote.h"
#include "models/load.h"
#include "program/plan/job_json.h"

namespace trivium::program {
namespace {

constexpr const char* kPlanSchema = "trivium.plan/1";
constexpr const char* kResultSchema = "trivium.plan-result/1";

models::Model model_at(const base::JsonReader& reader, const std::string& where) {
  if (reader.json().is_string()) {
    try {
      return models::load_model(reader.text());
    } catch (const base::Failure& failure) {
      throw base::Failure(failure.error().kind, fmt::format("{}: {}", base::one_line(where), failure.what()));
    }
  }
  return models::model_from_json(reader.json(), where);
}

}  // namespace

PlanFile plan_file_from_json(const nlohmann::json& json, const std::string& where) {
  const base::JsonReader reader(json, where);
  const std::vector<std::string> schemas{kPlanSchema, kResultSchema};
  const std::string schema = reader.at("schema").one_of(schemas);
  // A result repeats the job next to its answers; the plan is the best one's.
  if (schema == kPlanSchema) {
    reader.allow_only({"schema", "model", "cluster", "training", "plan"});
  } else {
    reader.allow_only({"schema",
                       "model",
                       "cluster",
                       "training",
                       "best",
                       "top",
                       "search",
                       "rejected",
                       "hypothetical",
                       "alternatives",
                       "relaxations",
                       "trainers",
                       "never_run_on_several_gpus",
                       "published_run",
                       "hint",
                       "whole_training",
                       "pareto",
                       "deadline",
                       "batches",
                       "sensitivity",
                       "robustness",
                       "space",
                       "others",
                       "cost_front",
                       "uncertainty",
                       "baselines",
                       "promise",
                       "nearest_batch",
                       "missing",
                       "trials",
                       "for"});
  }
  PlanFile file;
  file.job.model = model_at(reader.at("model"), where + "#/model");
  file.cluster = reader.at("cluster").json();
  if (!file.cluster.is_string() && !file.cluster.is_object()) reader.at("cluster").fail("must be a text or an object");
  file.job.training = training_from_json(reader.at("training"));
  if (file.job.training.sequence == 0) file.job.training.sequence = file.job.model.max_sequence;
  if (schema == kResultSchema) {
    if (reader.at("best").json().is_null()) reader.at("best").fail("no plan fitted; there is nothing to run");
    file.job.plan = plan_from_json(reader.at("best").at("plan"));
  } else {
    file.job.plan = plan_from_json(reader.at("plan"));
  }
  return file;
}

PlanFile read_plan_file(const std::string& path) { return plan_file_from_json(base::read_json_file(path), path); }

nlohmann::json to_json(const PlanFile& file) {
  return {{"schema", kPlanSchema},
          {"model", models::to_json(file.job.model)},
          {"cluster", file.cluster},
          {"training", to_json(file.job.training)},
          {"plan", to_json(file.job.plan)}};
}

}  // namespace trivium::program
