#include "planner/space/usual_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/space/trainers.h"
#include "program/plan/fields.h"
#include "program/plan/job_json.h"

namespace trivium::planner {
namespace {

using Of = UsualValue::Of;

// Counts are of rows of validation/runs_modern with the trainer's software, and a test counts them again; recipes are
// named by their file. A value is listed from a quarter of the rows on.
const std::vector<UsualValue>& table() {
  static const std::vector<UsualValue> kTable{
      {"megatron", Of::kDense, {{"tensor", "2"}}, "11 of 18 published runs", "software megatron-core"},
      {"megatron", Of::kMixtures, {{"expert", "4"}, {"data", "4"}}, "3 of 3 published runs", "software megatron-core"},
      {"megatron-bridge", Of::kDense, {{"tensor", "4"}}, "23 of 37 published runs", "megatron_bridge_summary.csv"},
      {"megatron-bridge",
       Of::kDense,
       {{"virtual_stages", "4"}, {"pipeline", "4"}, {"schedule", "interleaved"}},
       "27 of 37 published runs",
       "megatron_bridge_summary.csv"},
      {"megatron-bridge",
       Of::kMixtures,
       {{"expert", "8"}, {"data", "8"}},
       "59 of 59 published runs",
       "megatron_bridge_summary.csv"},
      {"megatron-bridge",
       Of::kMixtures,
       {{"recompute_modules", "moe_act"}, {"recompute", "selective"}},
       "23 of 59 published runs",
       "megatron_bridge_summary.csv"},
      {"megatron-bridge",
       Of::kMixtures,
       {{"overlap.expert", "true"},
        {"expert", "8"},
        {"data", "8"},
        {"pipeline", "4"},
        {"virtual_stages", "4"},
        {"schedule", "interleaved"}},
       "its recipes on H100 and B200",
       "scripts/performance: moe_a2a_overlap"},
      {"torchtitan", Of::kAll, {{"fp8", "current"}}, "11 of 11 published runs", "torchtitan_h100_h200.csv"},
      {"torchtitan",
       Of::kAll,
       {{"recompute", "selective"}},
       "its configurations",
       "train_configs/*.toml: activation_checkpoint.mode"},
      {"torchtitan",
       Of::kDense,
       {{"tensor", "8"}, {"data", "8"}, {"sequence_parallel", "true"}, {"zero_stage", "3"}},
       "10 of 11 published runs",
       "torchtitan_h100_h200.csv"},
      {"torchtitan",
       Of::kMixtures,
       {{"expert", "8"}, {"data", "8"}, {"zero_stage", "3"}},
       "its configurations of mixtures",
       "pytorch/torchtitan#1373; models/deepseek_v3/train_configs/deepseek_v3_671b.toml"},
      {"deepspeed", Of::kDense, {{"zero_stage", "3"}, {"data", "8"}}, "its own benchmarks", "arXiv 1910.02054"},
      {"deepspeed",
       Of::kMixtures,
       {{"expert", "8"}, {"data", "8"}, {"zero_stage", "2"}},
       "its own examples",
       "deepspeed.ai/tutorials/mixture-of-experts"},
      {"fsdp2",
       Of::kAll,
       {{"zero_stage", "3"}, {"data", "8"}},
       "every fully_shard by default",
       "torch.distributed.fsdp.fully_shard: reshard_after_forward"},
  };
  return kTable;
}

bool concerns(const std::string& bound, std::string_view field) {
  return field == bound || field.starts_with(bound + ".");
}

// Why the space excludes the plan for one of these fields' sake; empty: it does not, or the user does.
std::string exclusion(const SearchRequest& request, const program::Plan& plan, const UsualValue& usual) {
  const std::string field(usual.values.front().first);
  for (const Constraint& constraint : request.constraints) {
    if (!concerns(constraint.field, field) || constraint.allows(plan)) continue;
    return constraint.by_default ? fmt::format("searched {}", constraint.lifted()) : "";
  }
  for (const TrainerRule& rule : request.trainer->rules) {
    const bool of_these = std::ranges::any_of(usual.values, [&](const auto& one) { return one.first == rule.field; });
    if (of_these && !rule.holds(plan, request.job)) return rule.says;
  }
  return "";
}

}  // namespace

std::span<const UsualValue> usual_values() { return table(); }

std::vector<Missing> missing_values(const SearchRequest& request) {
  std::vector<Missing> missing;
  if (request.trainer == nullptr) return missing;
  for (const UsualValue& usual : table()) {
    const bool of_model =
        usual.models == Of::kAll || (usual.models == Of::kMixtures) == request.job.model.experts.has_value();
    const bool users = std::ranges::any_of(
        usual.values, [&](const auto& one) { return request.fixed.contains(std::string(one.first)); });
    if (usual.trainer != request.trainer->trainer || !of_model || users) continue;
    program::Plan plan;
    program::Training training = request.job.training;
    plan.precision = request.job.plan.precision;
    plan.stack = request.job.plan.stack;
    for (const auto& [field, value] : usual.values) {
      program::set_field(plan, training, std::string(field), std::string(value));
    }
    if (std::string why = exclusion(request, plan, usual); !why.empty()) {
      const auto& [field, value] = usual.values.front();
      missing.push_back({std::string(field), std::string(value), std::move(why), std::string(usual.in)});
    }
  }
  return missing;
}

std::string text_of(const std::vector<Missing>& missing) {
  std::string text;
  for (const Missing& one : missing) {
    text += fmt::format("{}{} {} ({}; {})", text.empty() ? "missing: " : "; ", one.field, one.value, one.in, one.why);
  }
  return text;
}

}  // namespace trivium::planner
