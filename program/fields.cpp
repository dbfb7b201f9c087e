// Plan and training fields as options of the command line: the JSON readers do the checking, so both accept the same.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "program/job_json.h"

namespace trivium::program {
namespace {

// "8" and "true" are JSON already; "full" becomes a string; "4,4,4" an array.
nlohmann::json value_of(const std::string& field, const std::string& text) {
  if (field == "stage_layers" || field == "stage_recompute" || field == "stage_nodes" ||
      field == "replica_micro_batch") {
    auto array = nlohmann::json::array();
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, ',');) array.push_back(value_of("", word));
    return array;
  }
  nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  return parsed.is_discarded() || parsed.is_null() || parsed.is_object() || parsed.is_array() ? nlohmann::json(text)
                                                                                              : parsed;
}

nlohmann::json nested(const std::string& field, nlohmann::json value) {
  const auto dot = field.find('.');
  if (dot == std::string::npos) return {{field, std::move(value)}};
  return {{field.substr(0, dot), {{field.substr(dot + 1), std::move(value)}}}};
}

}  // namespace

const std::vector<std::string>& plan_fields() {
  static const std::vector<std::string> kFields{"tensor",
                                                "sequence_parallel",
                                                "context",
                                                "context_method",
                                                "pipeline",
                                                "virtual_stages",
                                                "schedule",
                                                "stage_layers",
                                                "data",
                                                "zero_stage",
                                                "shard_group",
                                                "expert",
                                                "micro_batch",
                                                "replica_micro_batch",
                                                "recompute",
                                                "stage_recompute",
                                                "precision",
                                                "reduce_dtype",
                                                "attention",
                                                "overlap.gradient_reduction",
                                                "overlap.parameter_gather",
                                                "overlap.pipeline",
                                                "overlap.tensor",
                                                "bucket_bytes",
                                                "offload.optimizer",
                                                "offload.gradients",
                                                "offload.parameters",
                                                "offload.activations",
                                                "scatter_gather",
                                                "compression",
                                                "top_k_share",
                                                "placement",
                                                "stage_nodes",
                                                "stack"};
  return kFields;
}

const std::vector<std::string>& training_fields() {
  static const std::vector<std::string> kFields{"sequence",
                                                "global_batch",
                                                "total_tokens",
                                                "dropout",
                                                "seed",
                                                "learning_rate",
                                                "min_learning_rate",
                                                "warmup_steps",
                                                "decay_steps",
                                                "beta1",
                                                "beta2",
                                                "epsilon",
                                                "weight_decay",
                                                "clip_norm",
                                                "loss_scale",
                                                "loss_scale_interval",
                                                "loss_scale_backoff"};
  return kFields;
}

void set_field(Plan& plan, Training& training, const std::string& field, const std::string& text) {
  const auto& trained = training_fields();
  const bool of_training = std::find(trained.begin(), trained.end(), field) != trained.end();
  nlohmann::json json = of_training ? to_json(training) : to_json(plan);
  if (field == "micro_batch") json.erase("replica_micro_batch");
  json.merge_patch(nested(field, value_of(field, text)));
  std::string option = "--" + field;
  std::replace(option.begin(), option.end(), '_', '-');
  std::replace(option.begin(), option.end(), '.', '-');
  try {
    const edge::JsonReader reader(json, option);
    if (of_training) {
      training = training_from_json(reader);
    } else {
      plan = plan_from_json(reader);
    }
  } catch (const edge::Failure& failure) {
    // The place inside the JSON means nothing here: the option is the place.
    const std::string& message = failure.error().message;
    const auto colon = message.find(": ");
    throw edge::Failure(
        edge::ErrorKind::kUsage,
        fmt::format("{}: {}", option, colon == std::string::npos ? message : message.substr(colon + 2)));
  }
}

}  // namespace trivium::program
