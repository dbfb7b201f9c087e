#include "gui/model/knobs.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "edge/readable.h"
#include "gui/model/spoken.h"
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
  const bool as_many = static_cast<int>(plan.replica_micro_batch.size()) == plan.data;
  if (field == "micro_batch" || !as_many) plan.replica_micro_batch.clear();
  if (plan.tensor == 1) plan.sequence_parallel = false;
  if (field == "zero_stage" && plan.zero_stage == 0) plan.shard_group = 0;
  if (plan.shard_group > 0 && (plan.shard_group >= plan.data || plan.data % plan.shard_group != 0))
    plan.shard_group = 0;
}

}  // namespace

const std::vector<Knob>& knobs() {
  constexpr const char *kSplit = "Split", *kMemory = "Memory", *kWires = "Communication",
                       *kSoftware = "Arithmetic and software";
  static const std::vector<Knob> kKnobs{
      {"tensor", "Tensor parallel", "Ranks that share every matrix of a layer (Megatron column and row split)", kSplit},
      {"sequence_parallel", "Sequence parallel", "Norms and dropout split along the sequence inside the tensor group",
       kSplit},
      {"context", "Context parallel", "Ranks that share the sequence itself", kSplit},
      {"context_method", "Context method", "Keys go round a ring, or tokens are exchanged for heads", kSplit},
      {"pipeline", "Pipeline stages", "Runs of layers on different ranks", kSplit},
      {"virtual_stages", "Virtual stages", "Chunks of layers per pipeline stage, interleaved", kSplit},
      {"schedule", "Schedule", "Order of forward and backward passes in the pipeline", kSplit},
      {"data", "Data parallel", "Replicas of the model that share the batch", kSplit},
      {"expert", "Expert parallel", "Replicas that share the experts of mixture layers", kSplit},
      {"micro_batch", "Micro-batch", "Samples that pass the pipeline together", kSplit},
      {"zero_stage", "ZeRO stage", "What replicas share: 0 nothing, 1 optimizer state, 2 gradients, 3 parameters",
       kMemory},
      {"shard_group", "Shard group", "Replicas that share ZeRO's state; 0: all of them", kMemory},
      {"recompute", "Recompute", "Activations computed again in the backward pass instead of kept", kMemory},
      {"attention", "Attention", "Flash attention keeps no matrix of probabilities", kMemory},
      {"offload.optimizer", "Offload optimizer", "Where the optimizer's state is kept: none is the device", kMemory},
      {"offload.gradients", "Offload gradients", "Where gradients are kept", kMemory},
      {"offload.parameters", "Offload parameters", "Where parameters are kept while they are not used", kMemory},
      {"offload.activations", "Offload activations", "Where activations wait for their backward pass", kMemory},
      {"overlap.gradient_reduction", "Overlap gradients", "Reduce gradients beside the last backward pass", kWires},
      {"overlap.parameter_gather", "Overlap gathers", "Gather parameters beside the compute before they are needed",
       kWires},
      {"overlap.tensor", "Overlap tensor", "Tensor collectives beside products that do not wait for them", kWires},
      {"scatter_gather", "Scatter and gather",
       "Transfers in parts: every tensor rank sends its own and gathers the others'; stack: as that does", kWires},
      {"bucket_bytes", "Gradient buckets", "Bytes of gradients that are reduced together", kWires},
      {"reduce_dtype", "Reduce in", "Type of gradients on the wire", kWires},
      {"compression", "Compression", "Gradients made smaller on the wire; changes what is trained", kWires},
      {"top_k_share", "Share sent", "Of each parameter's gradients, the largest, where compression is top k", kWires},
      {"precision", "Precision", "Arithmetic of the matrix products", kSoftware},
      {"placement", "Placement", "Dimensions, neighbouring devices first", kSoftware},
      {"stack", "Software stack", "Whose habits: fused kernels, kinds of gradients, transfers", kSoftware}};
  return kKnobs;
}

std::string shown(const std::string& field, const std::string& value) {
  if (field == "bucket_bytes") {
    const std::int64_t bytes = std::strtoll(value.c_str(), nullptr, 10);
    return bytes == 0 ? "one a layer" : edge::size(bytes);
  }
  if (field == "shard_group" && value == "0") return "all replicas";
  if (field == "sequence_parallel" || field.starts_with("overlap.")) return value == "true" ? "on" : "off";
  if (field != "placement") return spoken(value);
  std::string letters;  // orders of dimensions are long words; their first letters fit
  for (std::size_t at = 0; at < value.size(); ++at) {
    if (at > 0 && value[at - 1] != '-') continue;
    letters += (letters.empty() ? "" : " › ") + std::string(1, static_cast<char>(value[at] - 'a' + 'A'));
  }
  return letters;
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

std::string words_of(const std::string& field) {
  const auto knob = std::find_if(knobs().begin(), knobs().end(), [&](const Knob& one) { return field == one.field; });
  return knob == knobs().end() ? spoken(field) : knob->words;
}

std::string field_called(const std::string& words) {
  const auto lower = [](std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  };
  for (const std::string& field : program::plan_fields()) {
    if (lower(words) == field || lower(words) == lower(words_of(field))) return field;
  }
  return words;
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
  if (field == "expert") texts = divisors(job.model.experts ? job.model.experts->count : 1, job.plan.data);
  if (field == "shard_group") {
    texts = divisors(job.plan.data, job.plan.data / 2);
    if (!texts.empty()) texts[0] = "0";  // a group of one shares nothing
  }
  if (field == "bucket_bytes") {
    for (const int mib : {0, 25, 50, 100, 200, 500}) texts.push_back(std::to_string(mib * std::int64_t{1024} * 1024));
  }
  if (field == "context_method") texts = {"ring", "all_to_all"};
  if (field == "reduce_dtype") texts = {"fp64", "fp32", "bf16", "fp16"};
  if (field == "compression") texts = {"none", "fp16", "top_k"};
  if (field.starts_with("offload.")) texts = {"none", "host", "disk"};
  if (field == "zero_stage") texts = {"0", "1", "2", "3"};
  if (field == "schedule") texts = {"sequential", "gpipe", "1f1b", "interleaved", "zero_bubble"};
  if (field == "recompute") texts = {"none", "selective", "full"};
  if (field == "scatter_gather") texts = {"stack", "on", "off"};
  if (field == "attention") texts = {"unfused", "flash"};
  if (field == "precision") texts = {"bf16", "fp16", "fp32", "fp64"};
  if (field == "placement") texts = placements();
  if (field == "stack") texts = stacks();
  if (field == "sequence_parallel" || field.starts_with("overlap.")) texts = {"false", "true"};
  if (field == "top_k_share" && job.plan.compression == program::Compression::kTopK) {
    texts = {"0.001", "0.01", "0.05", "0.1"};
  }
  const std::string now = present(scenario, field);
  if (std::find(texts.begin(), texts.end(), now) == texts.end()) texts.push_back(now);
  return texts;
}

std::string present(const Scenario& scenario, const std::string& field) {
  return field == "recompute" && !scenario.file.job.plan.stage_recompute.empty() ? kByChunk : value_of(scenario, field);
}

Scenario turn(Scenario scenario, const std::string& field, const std::string& text, bool fill) {
  if (text == kByChunk) return scenario;
  scenario = with_field(std::move(scenario), field, text);
  if (fill && (field == "tensor" || field == "pipeline" || field == "context")) fill_devices(scenario);
  couple(scenario.file.job.plan, field);
  return scenario;
}

}  // namespace trivium::gui
