#include "gui/model/knobs.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "program/job_json.h"
#include "program/stack.h"

namespace trivium::gui {
namespace {

using program::Plan;
using program::Schedule;

constexpr std::int64_t kWidestTensor = 64;
constexpr std::int64_t kLargestMicroBatch = 64;

std::vector<std::string> divisors(std::int64_t number, std::int64_t most) {
  std::vector<std::string> texts;
  for (std::int64_t d = 1; d <= std::min(number, most); ++d) {
    if (number % d == 0) texts.push_back(std::to_string(d));
  }
  return texts;
}

std::vector<std::string> placements() {
  std::vector<std::string> words{"context", "data", "pipeline", "tensor"};
  std::vector<std::string> orders;
  do {
    orders.push_back(words[0] + "-" + words[1] + "-" + words[2] + "-" + words[3]);
  } while (std::next_permutation(words.begin(), words.end()));
  return orders;
}

std::vector<std::string> stacks() {
  std::vector<std::string> names;
  for (const program::Habits& habits : program::all_habits()) names.push_back(habits.name);
  return names;
}

int devices_of(const Scenario& scenario) { return scenario.ranks > 0 ? scenario.ranks : scenario.cluster.devices(); }

std::int64_t per_replica(const Scenario& scenario) {
  return std::max<std::int64_t>(1, scenario.file.job.training.global_batch / std::max(1, scenario.file.job.plan.data));
}

void fill_devices(Scenario& scenario) {
  Plan& plan = scenario.file.job.plan;
  const std::int64_t replica = std::int64_t{plan.tensor} * plan.context * plan.pipeline;
  if (const int devices = devices_of(scenario); replica > 0 && devices % replica == 0) {
    plan.data = static_cast<int>(devices / replica);
  }
  while (plan.micro_batch > 1 && per_replica(scenario) % plan.micro_batch != 0) --plan.micro_batch;
}

void couple(Plan& plan, const std::string& field) {
  if (field == "virtual_stages") {
    if (plan.virtual_stages > 1) plan.schedule = Schedule::kInterleaved;
    if (plan.virtual_stages == 1 && plan.schedule == Schedule::kInterleaved) plan.schedule = Schedule::k1f1b;
  }
  if (field == "schedule") {
    if (plan.schedule == Schedule::kInterleaved && plan.virtual_stages == 1) plan.virtual_stages = 2;
    if (plan.schedule != Schedule::kInterleaved) plan.virtual_stages = 1;
  }
  if (field == "pipeline" && plan.pipeline == 1 && plan.schedule == Schedule::kInterleaved) {
    plan.schedule = Schedule::k1f1b;
    plan.virtual_stages = 1;
  }
  if (field == "pipeline" || field == "virtual_stages" || field == "schedule") {
    plan.stage_layers.clear();
    plan.stage_recompute.clear();
    plan.stage_nodes.clear();
  }
  if (field == "recompute") plan.stage_recompute.clear();
  if (plan.tensor == 1) plan.sequence_parallel = false;
}

}  // namespace

const std::vector<Knob>& knobs() {
  static const std::vector<Knob> kKnobs{
      {"tensor", "Tensor parallel", "Ranks that share every matrix of a layer (Megatron column and row split)"},
      {"sequence_parallel", "Sequence parallel", "Norms and dropout split along the sequence inside the tensor group"},
      {"context", "Context parallel", "Ranks that share the sequence itself"},
      {"pipeline", "Pipeline stages", "Runs of layers on different ranks"},
      {"virtual_stages", "Virtual stages", "Chunks of layers per pipeline stage, interleaved"},
      {"schedule", "Schedule", "Order of forward and backward passes in the pipeline"},
      {"data", "Data parallel", "Replicas of the model that share the batch"},
      {"zero_stage", "ZeRO stage", "What replicas share: 0 nothing, 1 optimizer state, 2 gradients, 3 parameters"},
      {"micro_batch", "Micro-batch", "Samples that pass the pipeline together"},
      {"recompute", "Recompute", "Activations computed again in the backward pass instead of kept"},
      {"attention", "Attention", "Flash attention keeps no matrix of probabilities"},
      {"overlap.gradient_reduction", "Overlap gradients", "Reduce gradients beside the last backward pass"},
      {"precision", "Precision", "Arithmetic of the matrix products"},
      {"placement", "Placement", "Dimensions, neighbouring devices first"},
      {"stack", "Software stack", "Whose habits: fused kernels, kinds of gradients, transfers"}};
  return kKnobs;
}

std::string value_of(const Scenario& scenario, const std::string& field) {
  nlohmann::json value = program::to_json(scenario.file.job.plan);
  std::string rest = field;
  for (std::size_t dot = 0; (dot = rest.find('.')) != std::string::npos; rest = rest.substr(dot + 1)) {
    value = nlohmann::json(value.at(rest.substr(0, dot)));
  }
  value = nlohmann::json(value.at(rest));
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::vector<std::string> choices(const Scenario& scenario, const std::string& field) {
  const program::Job& job = scenario.file.job;
  const std::int64_t devices = devices_of(scenario);
  std::vector<std::string> texts;
  if (field == "tensor") texts = divisors(job.model.heads, std::min(kWidestTensor, devices));
  if (field == "context") texts = divisors(job.training.sequence, std::min<std::int64_t>(16, devices));
  if (field == "pipeline") texts = divisors(job.model.layers, devices);
  if (field == "virtual_stages") texts = divisors(job.model.layers / std::max(1, job.plan.pipeline), job.model.layers);
  if (field == "data") texts = divisors(devices, devices);
  if (field == "micro_batch") texts = divisors(per_replica(scenario), kLargestMicroBatch);
  if (field == "zero_stage") texts = {"0", "1", "2", "3"};
  if (field == "schedule") texts = {"sequential", "gpipe", "1f1b", "interleaved", "zero_bubble"};
  if (field == "recompute") texts = {"none", "selective", "full"};
  if (field == "attention") texts = {"unfused", "flash"};
  if (field == "precision") texts = {"bf16", "fp16", "fp32", "fp64"};
  if (field == "placement") texts = placements();
  if (field == "stack") texts = stacks();
  if (field == "sequence_parallel" || field.starts_with("overlap.")) texts = {"false", "true"};
  const std::string now = value_of(scenario, field);
  if (std::find(texts.begin(), texts.end(), now) == texts.end()) texts.push_back(now);
  return texts;
}

Scenario turn(Scenario scenario, const std::string& field, const std::string& text, bool fill) {
  scenario = with_field(std::move(scenario), field, text);
  couple(scenario.file.job.plan, field);
  if (fill && (field == "tensor" || field == "pipeline" || field == "context")) fill_devices(scenario);
  return scenario;
}

}  // namespace trivium::gui
