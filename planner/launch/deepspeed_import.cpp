// DeepSpeed's JSON, alone or inside a script for Megatron-DeepSpeed, as a job.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_reader.h"
#include "planner/launch/import_parts.h"
#include "planner/launch/megatron_plan.h"

namespace trivium::planner::launch {
namespace {

using base::JsonReader;
using program::DType;
using program::Plan;
using program::Schedule;
using program::Storage;

bool is_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

nlohmann::json parse(const std::string& text, const std::string& where) {
  try {
    return base::parse_json(text, where, base::Comments::kTaken);
  } catch (const base::Failure& failure) {
    throw base::Failure(base::ErrorKind::kInput,
                        fmt::format("{}; placeholders of a template must be filled in first", failure.what()));
  }
}

class DeepspeedImport {
 public:
  DeepspeedImport(const ImportRequest& request, Settings settings, const nlohmann::json& json)
      : request_(request), settings_(std::move(settings)), json_(json, request.where), plan_(imported_.job.plan) {}

  Imported read() {
    const bool has_flags = !settings_.script().arguments.empty();
    if (!has_flags && !request_.model) {
      settings_.fail("DeepSpeed's JSON does not say the model; give --model NAME");
    }
    imported_.job.model = read_model(settings_, request_, imported_.losses);
    read_training(settings_, request_, imported_.job, imported_.losses);
    if (!has_flags) {  // the JSON says nothing of the training
      const std::int64_t sequence = imported_.job.training.sequence;
      imported_.job.training = {};
      imported_.job.training.sequence = sequence;
    }
    read_split(settings_, request_, imported_);
    read_recompute(settings_, imported_);
    read_precision(settings_, imported_);
    if (settings_.has({"use-flash-attn-v2", "use-flash-attn", "use-flash-attn-triton"})) {
      plan_.attention = program::Attention::kFlash;
    }
    partition();
    if (settings_.has({"enable-zbh1-pipeline"})) plan_.schedule = Schedule::kZeroBubble;
    if (plan_.context > 1) plan_.context_method = program::ContextMethod::kAllToAll;
    for (const char* said_twice : {"zero-stage", "cpu-optimizer", "no-pipeline-parallel"}) settings_.find({said_twice});
    batch();
    precision();
    zero();
    name_autos(json_.json(), "");
    // Its optimizer of bf16 shards the states over the replicas, whatever the stage (runtime/bf16_optimizer.py).
    if (plan_.precision == DType::kBf16 && plan_.zero_stage == 0 && plan_.pipeline > 1) {
      plan_.zero_stage = 1;
      lose("zero_optimization.stage",
           "0 with bf16 taken as 1: DeepSpeed's BF16_Optimizer shards the optimizer's states");
    }
    activations();
    unmapped(json_, {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "bf16",
                     "bfloat16", "fp16", "communication_data_type", "data_types", "zero_optimization",
                     "gradient_clipping", "activation_checkpointing", "steps_per_print", "wall_clock_breakdown",
                     "sequence_parallel_size", "tensor_parallel"});
    // Megatron-DeepSpeed passes its own arguments along with the JSON; the JSON alone drives any model.
    const bool is_alone = settings_.script().arguments.empty();
    plan_.stack = is_alone && plan_.zero_stage == 3 ? "deepspeed-zero3" : "megatron-deepspeed";
    lose_unread(settings_, imported_.losses);
    return std::move(imported_);
  }

 private:
  void lose(std::string name, std::string what) { imported_.losses.push_back({std::move(name), std::move(what)}); }

  /// The member, unless it is "auto" or null: filled in at run time.
  static std::optional<JsonReader> said(const JsonReader& at, const char* key) {
    const auto member = at.find(key);
    if (!member || member->json().is_null() || member->json() == "auto") return std::nullopt;
    return member;
  }

  /// Settings that Hugging Face's Trainer fills in from its arguments, and what was taken for them.
  void name_autos(const nlohmann::json& at, const std::string& path) {
    for (const auto& [key, value] : at.items()) {
      const std::string name = path.empty() ? key : path + "." + key;
      if (value.is_object()) name_autos(value, name);
      if (value != "auto") continue;
      std::string taken = "left at DeepSpeed's default";
      if (name == "bf16.enabled" || name == "bfloat16.enabled") taken = "taken as bf16";
      if (name == "fp16.enabled") taken = "taken as off, for bf16";
      if (name == "train_batch_size") taken = fmt::format("taken as {}", imported_.job.training.global_batch);
      if (name == "train_micro_batch_size_per_gpu") taken = fmt::format("taken as {}", plan_.micro_batch);
      if (name == "gradient_accumulation_steps") taken = "what the batch and the micro-batch leave";
      if (name == "gradient_clipping") taken = "taken as 1, the Trainer's max_grad_norm";
      lose(name, "\"auto\": " + taken);
    }
  }

  /// Stages of equal numbers of layers and embeddings, as BLOOM's: embedding and head count as a layer each.
  void partition() {
    const std::string how = settings_.text({"pp-partition-method"}).value_or("");
    if (how.find("embedding") == std::string::npos || plan_.pipeline < 2) return;
    const std::int64_t parts = imported_.job.model.layers + 2;
    if (parts % plan_.pipeline != 0) {
      lose("--pp-partition-method", how + " taken as equal layers");
      return;
    }
    plan_.stage_layers.assign(static_cast<std::size_t>(plan_.pipeline), static_cast<int>(parts / plan_.pipeline));
    --plan_.stage_layers.front();
    --plan_.stage_layers.back();
  }

  static bool is_auto(const JsonReader& at, const char* section, const char* key) {
    const nlohmann::json& json = at.json();
    return json.contains(section) && json[section].is_object() && json[section].contains(key) &&
           json[section][key] == "auto";
  }

  static std::optional<std::int64_t> count(const JsonReader& at, const char* key) {
    constexpr std::int64_t kMost = std::int64_t{1} << 24;
    const auto member = said(at, key);
    return member ? std::optional(member->integer(1, kMost)) : std::nullopt;
  }

  static bool enabled(const JsonReader& at, const char* key) {
    const auto member = said(at, key);
    if (!member) return false;
    const auto flag = said(*member, "enabled");
    return flag && flag->boolean();
  }

  void unmapped(const JsonReader& at, const std::vector<std::string>& known, const std::string& prefix = "") {
    for (const auto& [key, value] : at.members()) {
      if (std::find(known.begin(), known.end(), key) == known.end()) lose(prefix + key, "has no place in a plan");
    }
  }

  // train_batch_size = micro-batch x accumulation x data, where any two say the third.
  void batch() {
    if (const auto size = count(json_, "sequence_parallel_size"); size && *size > 1) {
      plan_.context = static_cast<int>(*size);
      plan_.context_method = program::ContextMethod::kAllToAll;
    }
    if (const auto section = said(json_, "tensor_parallel")) {
      if (const auto size = count(*section, "autotp_size")) plan_.tensor = static_cast<int>(*size);
    }
    const int ranks = read_ranks(settings_, request_);
    const std::int64_t replica = std::int64_t{plan_.tensor} * plan_.context * plan_.pipeline;
    if (ranks > 0 && ranks % replica == 0) plan_.data = static_cast<int>(ranks / replica);
    auto global = count(json_, "train_batch_size");
    if (request_.global_batch > 0) global = request_.global_batch;
    const auto micro = count(json_, "train_micro_batch_size_per_gpu");
    const auto steps = count(json_, "gradient_accumulation_steps");
    if (micro) plan_.micro_batch = static_cast<int>(*micro);
    if (!micro && global && steps) {
      plan_.micro_batch = static_cast<int>(std::max<std::int64_t>(1, *global / (*steps * plan_.data)));
    }
    const std::int64_t product = std::int64_t{plan_.micro_batch} * steps.value_or(1) * plan_.data;
    if (global && steps && product != *global) {
      json_.at("train_batch_size")
          .fail(fmt::format("{} is not micro-batch {} x accumulation {} x data {} = {}; give --ranks", *global,
                            plan_.micro_batch, *steps, plan_.data, product));
    }
    if (global) {
      imported_.job.training.global_batch = *global;
    } else if (steps || imported_.job.training.global_batch == 0) {
      imported_.job.training.global_batch = product;
    }
  }

  void precision() {
    const bool fp16 = enabled(json_, "fp16");
    const bool fills_in = is_auto(json_, "bf16", "enabled") || is_auto(json_, "fp16", "enabled");
    const bool bf16 = enabled(json_, "bf16") || enabled(json_, "bfloat16") || (fills_in && !fp16);
    if (fills_in && settings_.script().arguments.empty()) plan_.attention = program::Attention::kFlash;
    if (bf16 && fp16) json_.at("fp16").fail("bf16 and fp16 exclude each other");
    if (bf16) plan_.precision = DType::kBf16;
    if (fp16) plan_.precision = DType::kFp16;
    plan_.reduce_dtype = plan_.precision;
    static const std::vector<std::string> kTypes{"fp16", "bf16", "fp32"};
    if (const auto type = said(json_, "communication_data_type")) {
      const std::string name = type->one_of(kTypes);
      plan_.reduce_dtype = name == "fp16" ? DType::kFp16 : name == "bf16" ? DType::kBf16 : DType::kFp32;
    }
    if (const auto clip = said(json_, "gradient_clipping")) imported_.job.training.optimizer.clip_norm = clip->number();
  }

  void zero() {
    const auto section = said(json_, "zero_optimization");
    if (!section) return;
    if (section->json().is_boolean()) {
      plan_.zero_stage = section->boolean() ? 1 : 0;
      return;
    }
    constexpr int kMostStage = 3;
    if (const auto stage = said(*section, "stage")) plan_.zero_stage = static_cast<int>(stage->integer(0, kMostStage));
    const auto overlap = said(*section, "overlap_comm");
    plan_.overlap.gradient_reduction = overlap ? overlap->boolean() : plan_.zero_stage == 3;
    plan_.overlap.parameter_gather = false;  // its prefetch hides little (program/plan/stack.cpp, deepspeed_zero3)
    if (const auto bucket = said(*section, "reduce_bucket_size")) {
      plan_.bucket_bytes = elements(*bucket) * program::size_of(plan_.reduce_dtype);
    }
    if (const auto group = said(*section, "mics_shard_size"); group && group->number() > 0) {
      constexpr int kMostRanks = 1 << 20;
      plan_.shard_group = static_cast<int>(group->integer(1, kMostRanks));
    }
    plan_.offload.optimizer = device(*section, "offload_optimizer", "cpu_offload");
    plan_.offload.parameters = device(*section, "offload_param", "cpu_offload_params");
    if (plan_.zero_stage >= 2 && plan_.offload.optimizer == Storage::kHost) plan_.offload.gradients = Storage::kHost;
    unmapped(*section,
             {"stage", "overlap_comm", "reduce_bucket_size", "mics_shard_size", "offload_optimizer", "offload_param",
              "cpu_offload", "cpu_offload_params", "reduce_scatter", "contiguous_gradients"},
             "zero_optimization.");
  }

  /// A count of elements, which people write as 5e8 too.
  static std::int64_t elements(const JsonReader& member) {
    constexpr double kMost = double{std::int64_t{1} << 44};
    const double value = member.number();
    if (value < 1 || value > kMost || value != std::floor(value)) {
      member.fail(fmt::format("must be a whole number from 1 to {:.0f}, not {:g}", kMost, value));
    }
    return static_cast<std::int64_t>(value);
  }

  static Storage device(const JsonReader& section, const char* key, const char* legacy) {
    if (const auto old = said(section, legacy); old && old->boolean()) return Storage::kHost;
    const auto member = said(section, key);
    if (!member) return Storage::kNone;
    static const std::vector<std::string> kDevices{"none", "cpu", "nvme"};
    const auto device = said(*member, "device");
    const std::string name = device ? device->one_of(kDevices) : "none";
    return name == "cpu" ? Storage::kHost : name == "nvme" ? Storage::kDisk : Storage::kNone;
  }

  void activations() {
    const auto section = said(json_, "activation_checkpointing");
    if (!section) return;
    if (const auto flag = said(*section, "cpu_checkpointing"); flag && flag->boolean()) {
      plan_.offload.activations = Storage::kHost;
    }
    if (plan_.recompute == program::Recompute::kNone) {
      lose("activation_checkpointing", "configures recomputation but does not switch it on; --recompute full does");
    }
  }

  const ImportRequest& request_;
  Settings settings_;
  JsonReader json_;
  Imported imported_;
  Plan& plan_;
};

}  // namespace

bool is_deepspeed(const ImportRequest& request) {
  if (is_json(request.text)) return true;
  const Script script = read_script(request.text, request.where, request.surroundings);
  return std::any_of(script.arguments.begin(), script.arguments.end(),
                     [](const Argument& argument) { return argument.name == "deepspeed"; });
}

Imported import_deepspeed(const ImportRequest& request) {
  if (is_json(request.text)) {
    const nlohmann::json json = parse(request.text, request.where);
    return DeepspeedImport(request, Settings(Script{}, request.where), json).read();
  }
  Script script = read_script(request.text, request.where, request.surroundings);
  std::string document;
  for (const std::string& text : script.documents) {
    if (is_json(text)) document = text;
  }
  const nlohmann::json json = document.empty() ? nlohmann::json::object() : parse(document, request.where);
  return DeepspeedImport(request, Settings(std::move(script), request.where), json).read();
}

}  // namespace trivium::planner::launch
