#include "planner/plan_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "program/job_json.h"

namespace trivium::planner {
namespace {

using program::Plan;

std::string yes(bool value) { return value ? "true" : "false"; }

template <class Enum>
std::string name(Enum value) {
  return std::string(program::name_of(value));
}

template <class Items, class Text>
std::string joined(const Items& items, Text text) {
  std::string all;
  for (const auto& item : items) all += (all.empty() ? "" : ",") + text(item);
  return all;
}

const std::map<std::string, FieldText>& texts() {
  static const std::map<std::string, FieldText> kTexts{
      {"tensor", [](const Plan& p) { return std::to_string(p.tensor); }},
      {"sequence_parallel", [](const Plan& p) { return yes(p.sequence_parallel); }},
      {"context", [](const Plan& p) { return std::to_string(p.context); }},
      {"context_method", [](const Plan& p) { return name(p.context_method); }},
      {"pipeline", [](const Plan& p) { return std::to_string(p.pipeline); }},
      {"virtual_stages", [](const Plan& p) { return std::to_string(p.virtual_stages); }},
      {"schedule", [](const Plan& p) { return name(p.schedule); }},
      {"stage_layers",
       [](const Plan& p) { return joined(p.stage_layers, [](int layers) { return std::to_string(layers); }); }},
      {"data", [](const Plan& p) { return std::to_string(p.data); }},
      {"zero_stage", [](const Plan& p) { return std::to_string(p.zero_stage); }},
      {"shard_group", [](const Plan& p) { return std::to_string(p.shard_group); }},
      {"expert", [](const Plan& p) { return std::to_string(p.expert); }},
      {"micro_batch", [](const Plan& p) { return std::to_string(p.micro_batch); }},
      {"replica_micro_batch",
       [](const Plan& p) {
         return joined(p.replica_micro_batch, [](int samples) { return std::to_string(samples); });
       }},
      {"recompute", [](const Plan& p) { return name(p.recompute); }},
      {"stage_recompute", [](const Plan& p) { return joined(p.stage_recompute, name<program::Recompute>); }},
      {"precision", [](const Plan& p) { return name(p.precision); }},
      {"reduce_dtype", [](const Plan& p) { return name(p.reduce_dtype); }},
      {"attention", [](const Plan& p) { return name(p.attention); }},
      {"overlap.gradient_reduction", [](const Plan& p) { return yes(p.overlap.gradient_reduction); }},
      {"overlap.parameter_gather", [](const Plan& p) { return yes(p.overlap.parameter_gather); }},
      {"overlap.pipeline", [](const Plan& p) { return yes(p.overlap.pipeline); }},
      {"overlap.tensor", [](const Plan& p) { return yes(p.overlap.tensor); }},
      {"bucket_bytes", [](const Plan& p) { return std::to_string(p.bucket_bytes); }},
      {"offload.optimizer", [](const Plan& p) { return name(p.offload.optimizer); }},
      {"offload.gradients", [](const Plan& p) { return name(p.offload.gradients); }},
      {"offload.parameters", [](const Plan& p) { return name(p.offload.parameters); }},
      {"offload.activations", [](const Plan& p) { return name(p.offload.activations); }},
      {"scatter_gather", [](const Plan& p) { return name(p.scatter_gather); }},
      {"compression", [](const Plan& p) { return name(p.compression); }},
      {"top_k_share", [](const Plan& p) { return fmt::format("{}", p.top_k_share); }},
      {"placement", [](const Plan& p) { return p.placement; }},
      {"stage_nodes",
       [](const Plan& p) { return joined(p.stage_nodes, [](int group) { return std::to_string(group); }); }},
      {"stack", [](const Plan& p) { return p.stack; }},
  };
  return kTexts;
}

}  // namespace

std::string text_of(const Plan& plan, const std::string& field) {
  const FieldText text = text_of_field(field);
  return text == nullptr ? "" : text(plan);
}

FieldText text_of_field(const std::string& field) {
  const auto found = texts().find(field);
  return found == texts().end() ? nullptr : found->second;
}

std::vector<Difference> differences(const Plan& before, const Plan& after) {
  std::vector<Difference> found;
  const bool by_replica = !before.replica_micro_batch.empty() && !after.replica_micro_batch.empty();
  for (const std::string& field : program::plan_fields()) {
    if (by_replica && field == "micro_batch") continue;  // which the lists stand for
    std::string a = text_of(before, field), b = text_of(after, field);
    if (a != b) found.push_back({field, std::move(a), std::move(b)});
  }
  return found;
}

}  // namespace trivium::planner
