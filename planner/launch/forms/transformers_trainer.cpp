// A training script of Hugging Face's Trainer: its TrainingArguments on the command line, with accelerate's YAML or
// DeepSpeed's JSON where the command names one.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/quote.h"
#include "planner/launch/forms/accelerate.h"
#include "planner/launch/forms/forms.h"
#include "planner/launch/forms/hub.h"

namespace trivium::planner::launch::forms {
namespace {

using program::DType;
using program::Plan;

class TrainerImport {
 public:
  TrainerImport(const ImportRequest& request, Script script)
      : request_(request), settings_(std::move(script), request.where), plan_(imported_.job.plan) {}

  Imported read() {
    const Argument* name = settings_.find({"model-name-or-path", "model-name", "model-id", "base-model"});
    if (name == nullptr && !request_.model) settings_.fail("--model_name_or_path is missing; give --model");
    imported_.job.model = name != nullptr ? named_model(settings_, *name, request_) : *request_.model;
    plan_.attention = program::Attention::kFlash;
    if (settings_.text({"attn-implementation"}).value_or("sdpa") == "eager") {
      plan_.attention = program::Attention::kUnfused;
    }
    batch();
    request_.model = imported_.job.model;
    request_.ranks = ranks_;
    request_.fixes_ranks = true;
    how_ranks_share();
    if (settings_.is_on({"gradient-checkpointing"})) plan_.recompute = program::Recompute::kFull;
    training();
    optimizer();
    adapters();
    for (const char* beside : {"per-device-eval-batch-size", "do-train", "do-eval", "output-dir", "num-machines",
                               "machine-rank", "main-process-ip", "main-process-port", "mixed-precision"}) {
      settings_.find({beside});
    }
    lose_others();
    return std::move(imported_);
  }

 private:
  void lose(const char* name, std::string what) { imported_.losses.push_back({name, std::move(what)}); }
  bool is_on(const char* name) { return settings_.is_on({name}); }

  std::optional<std::string> content_of(const std::string& file) const {
    const auto own = settings_.script().files.find(file);
    if (own != settings_.script().files.end()) return own->second;
    return request_.surroundings.read_file ? request_.surroundings.read_file(file) : std::nullopt;
  }

  std::string needed_file(const char* option) {
    const Argument* argument = settings_.find({option});
    const std::string file = settings_.text({option}).value_or("");
    const auto content = content_of(file);
    if (!content) settings_.fail_at(*argument, fmt::format("--{} {} is not there", option, base::quote(file)));
    return *content;
  }

  // One process where a plain `python` starts it.
  void batch() {
    if (settings_.has({"config-file"})) {
      config_.emplace(yaml::settings_of(yaml::read(needed_file("config-file"), config_name())), config_name());
    }
    ranks_ = std::max(1, read_ranks(settings_, request_));
    constexpr std::int64_t kMostProcesses = 1 << 20;
    const bool counts = settings_.has({"nproc-per-node", "num-processes", "num-gpus", "nnodes", "num-nodes"});
    if (!counts && !request_.fixes_ranks && config_) {
      ranks_ = static_cast<int>(config_->count({"num_processes"}, 1, kMostProcesses).value_or(ranks_));
    }
    if (!request_.fixes_ranks && !settings_.has({"nnodes", "num-nodes", "num-processes"}) &&
        settings_.has({"nproc-per-node", "num-gpus"})) {  // torchrun and deepspeed start on one node by default
      const std::string each = settings_.text({"nproc-per-node", "num-gpus"}).value_or("");
      const bool is_count = !each.empty() && each.find_first_not_of("0123456789") == std::string::npos;
      if (is_count)
        ranks_ = static_cast<int>(*settings_.count({"nproc-per-node", "num-gpus"}, 1, kMostRanksOfADimension));
    }
    const auto& command = settings_.script().command;
    if (!counts && !request_.fixes_ranks && !config_ && !command.empty() &&
        command.front().find("python") != std::string::npos &&
        std::ranges::none_of(command, [](const std::string& word) { return word.starts_with("torch.distributed"); })) {
      ranks_ = 1;
      lose("processes", "python starts one; --ranks says otherwise");
    }
    plan_.micro_batch = static_cast<int>(settings_.count({"per-device-train-batch-size"}, 1, kMostSamples).value_or(8));
    accumulated_ = settings_.count({"gradient-accumulation-steps"}, 1, kMostAccumulated).value_or(1);
    plan_.precision = is_on("bf16") ? DType::kBf16 : is_on("fp16") ? DType::kFp16 : DType::kFp32;
    const std::string width = settings_.text({"dtype", "torch-dtype"}).value_or("");
    if (width == "bfloat16" || width == "bf16") plan_.precision = DType::kBf16;
    settings_.find({"tf32"});
  }

  std::string config_name() { return base::one_line(settings_.text({"config-file"}).value_or("")); }

  void how_ranks_share() {
    plan_.stack = is_on("torch-compile") ? "torchtitan-fsdp2" : "torchtitan-fsdp2-eager";
    const std::string json = settings_.text({"deepspeed"}).value_or("");
    if (!json.empty() || settings_.has({"deepspeed-config"})) {
      deepspeed(needed_file(json.empty() ? "deepspeed-config" : "deepspeed"), json);
    } else if (config_ && uses_deepspeed(*config_)) {
      std::string where = config_name();
      const std::string text = deepspeed_json_of(*config_, request_, where);
      deepspeed(text, where);
    } else if (config_) {
      const DType own = plan_.precision;
      read_accelerate(*config_, request_, imported_);
      if (own != DType::kFp32) plan_.precision = own;
      if (own != DType::kFp32 && plan_.zero_stage > 0) plan_.reduce_dtype = own;
    } else if (settings_.has({"fsdp"})) {
      fsdp();
    } else {
      plan_.data = ranks_;
      plan_.reduce_dtype = DType::kFp32;
      plan_.overlap.gradient_reduction = plan_.data > 1;
      plan_.zero_stage = static_cast<int>(settings_.count({"zero-stage"}, 0, 3).value_or(0));
      if (settings_.has({"zero-stage"})) plan_.stack = "deepspeed-zero3";
    }
    if (config_) lose_unread_of_accelerate(*config_, imported_.losses);
  }

  // transformers/training_args.py: "full_shard auto_wrap", "shard_grad_op", "hybrid_shard", "offload".
  void fsdp() {
    plan_.stack = "fsdp";
    plan_.data = ranks_;
    std::string words;
    for (const std::string& word : settings_.find({"fsdp"})->values) words += " " + word;
    const auto has = [&](const char* word) { return words.find(word) != std::string::npos; };
    plan_.zero_stage = has("no_shard") ? 0 : has("shard_grad_op") || has("hybrid_shard_zero2") ? 2 : 3;
    const int each = request_.devices_per_node;
    if (has("hybrid_shard") && each > 0 && each < ranks_ && ranks_ % each == 0) plan_.shard_group = each;
    if (has("offload")) {
      plan_.offload.optimizer = plan_.offload.gradients = plan_.offload.parameters = program::Storage::kHost;
    }
    if (plan_.data == 1) plan_.zero_stage = plan_.shard_group = 0;
    plan_.reduce_dtype = plan_.precision;
    plan_.overlap.gradient_reduction = plan_.data > 1;
    plan_.overlap.parameter_gather = plan_.zero_stage > 0;
    for (const char* beside : {"fsdp-transformer-layer-cls-to-wrap", "fsdp-min-num-params"}) settings_.find({beside});
    if (!settings_.has({"fsdp-config"})) return;
    const nlohmann::json config = base::parse_json(needed_file("fsdp-config"), "fsdp_config", base::Comments::kTaken);
    const auto on = [&](const char* key) {
      return config.is_object() && config.contains(key) && (config[key] == true || config[key] == "true");
    };
    if (on("activation_checkpointing")) plan_.recompute = program::Recompute::kFull;
  }

  // transformers/integrations/deepspeed.py, HfTrainerDeepSpeedConfig.trainer_config_process.
  void deepspeed(const std::string& text, const std::string& where) {
    ImportRequest json = request_;
    json.where = base::one_line(where);
    json.global_batch = 0;
    nlohmann::json config = base::parse_json(text, json.where, base::Comments::kTaken);
    if (!config.is_object()) settings_.fail(json.where + " is no object");
    std::vector<std::string> filled;
    const auto fill = [&](nlohmann::json& at, const char* key, const nlohmann::json& value) {
      if (!at.is_object() || !at.contains(key) || at[key] != "auto") return;
      at[key] = value;
      filled.emplace_back(key);
    };
    for (const char* fixed : {"train_micro_batch_size_per_gpu", "gradient_accumulation_steps"}) {
      if (!config.contains(fixed)) config[fixed] = "auto";
    }
    fill(config, "train_micro_batch_size_per_gpu", plan_.micro_batch);
    fill(config, "gradient_accumulation_steps", accumulated_);
    fill(config, "train_batch_size", std::int64_t{plan_.micro_batch} * accumulated_ * ranks_);
    fill(config, "gradient_clipping", settings_.number({"max-grad-norm"}).value_or(1));
    for (const auto& [section, width] : {std::pair{"bf16", DType::kBf16}, std::pair{"fp16", DType::kFp16}}) {
      if (config.contains(section)) fill(config[section], "enabled", plan_.precision == width);
    }
    if (config.contains("zero_optimization")) {
      const std::int64_t hidden = imported_.job.model.hidden;
      nlohmann::json& zero = config["zero_optimization"];
      fill(zero, "reduce_bucket_size", hidden * hidden);
      fill(zero, "stage3_prefetch_bucket_size", hidden * hidden * 9 / 10);
      fill(zero, "stage3_param_persistence_threshold", hidden * 10);
    }
    config.erase("optimizer");
    config.erase("scheduler");
    json.text = config.dump();
    std::vector<Loss> before = std::move(imported_.losses);
    models::Model model = imported_.job.model;
    imported_ = import_deepspeed(json);
    imported_.job.model = std::move(model);
    imported_.losses.insert(imported_.losses.begin(), before.begin(), before.end());
    plan_.attention = program::Attention::kFlash;
    if (!filled.empty()) {
      imported_.losses.push_back(
          {"auto", "of the JSON are the Trainer's: " + fmt::format("{}", fmt::join(filled, " "))});
    }
  }

  void training() {
    program::Training& t = imported_.job.training;
    const auto given = settings_.count(
        {"model-max-length", "max-seq-length", "max-seq-len", "max-length", "block-size", "cutoff-len"});
    constexpr std::int64_t kUsual = 1024;
    if (!given && request_.sequence == 0) {
      lose("sequence", "is not in the command; taken as at most 1024 tokens, run_clm.py's blocks");
    }
    t.sequence =
        request_.sequence > 0 ? request_.sequence : given.value_or(std::min(kUsual, imported_.job.model.max_sequence));
    t.global_batch = std::int64_t{plan_.micro_batch} * accumulated_ * plan_.data;
    if (request_.global_batch > 0) t.global_batch = request_.global_batch;
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    const std::string most = settings_.text({"max-steps", "max-train-steps"}).value_or("-1");
    t.total_tokens = 0;
    if (!most.starts_with('-')) {
      t.total_tokens = tokens_of(*settings_.count({"max-steps", "max-train-steps"}, 0, kMost), t);
    }
    settings_.find({"num-train-epochs"});
  }

  // transformers/training_args.py: its defaults.
  void optimizer() {
    program::Optimizer& o = imported_.job.training.optimizer;
    const auto rate = [&](const char* name, double otherwise) { return settings_.number({name}).value_or(otherwise); };
    o.learning_rate = rate("learning-rate", 5e-5);
    o.min_learning_rate = 0;
    o.weight_decay = rate("weight-decay", 0);
    o.beta1 = rate("adam-beta1", 0.9);
    o.beta2 = rate("adam-beta2", 0.999);
    o.epsilon = rate("adam-epsilon", 1e-8);
    o.clip_norm = rate("max-grad-norm", 1);
    o.warmup_steps =
        static_cast<std::int64_t>(std::min(settings_.number({"warmup-steps", "num-warmup-steps"}).value_or(0), 1e9));
    const std::string decay = settings_.text({"lr-scheduler-type"}).value_or("linear");
    if (decay != "cosine") lose("--lr_scheduler_type", base::one_line(decay) + " taken as cosine");
    const std::string kind = settings_.text({"optim"}).value_or("adamw_torch");
    if (!kind.starts_with("adamw_torch") && kind != "adamw_hf")
      lose("--optim", base::one_line(kind) + " taken as AdamW");
  }

  void adapters() {
    const Argument* rank = settings_.find({"lora-r", "lora-rank"});
    const bool is_off = settings_.has({"lora-enable", "use-lora", "use-peft"}) &&
                        !settings_.is_on({"lora-enable", "use-lora", "use-peft"});
    if (rank == nullptr || is_off) return;
    constexpr std::int64_t kMostRank = 1 << 16;
    program::Lora& lora = imported_.job.training.lora;
    lora.rank = settings_.count({"lora-r", "lora-rank"}, 1, kMostRank).value_or(8);
    lora.alpha = settings_.number({"lora-alpha"}).value_or(16);
    lose("--lora_r", "taken as LoRA of every matrix of the layers");
    settings_.find({"lora-dropout"});
    settings_.find({"lora-target-modules"});
  }

  void lose_others() {
    constexpr std::array<std::string_view, 30> kBesideTraining{
        "dataset",    "validation",    "eval",   "save",         "logging",      "report-to",
        "overwrite",  "preprocessing", "hub",    "push-to",      "run-name",     "warmup-r",
        "tokenizer",  "cache-dir",     "token",  "trust-remote", "load-best",    "streaming",
        "dataloader", "lazy-pre",      "ddp",    "remove-un",    "disable-tqdm", "seed",
        "train-file", "do-",           "prompt", "template",     "instruction",  "use-auth"};
    std::vector<Loss> others;
    lose_unread(settings_, others);
    std::string passed;
    for (Loss& loss : others) {
      const std::string name = loss.field.starts_with("--") ? loss.field.substr(2) : "";
      const auto begins = [&](std::string_view part) { return name.starts_with(part); };
      if (!name.empty() && std::ranges::any_of(kBesideTraining, begins)) {
        passed += " " + loss.field;
      } else {
        imported_.losses.push_back(std::move(loss));
      }
    }
    if (!passed.empty()) lose("arguments", "ignored, about data, evaluation and logs:" + passed);
  }

  ImportRequest request_;
  Imported imported_;
  Settings settings_;
  std::optional<Settings> config_;
  Plan& plan_;
  int ranks_ = 1;
  std::int64_t accumulated_ = 1;
};

}  // namespace

bool is_trainer(const Script& script) {
  return std::ranges::any_of(script.arguments,
                             [](const Argument& argument) { return argument.name == "per-device-train-batch-size"; });
}

Imported import_trainer(const ImportRequest& request, Script script) {
  return TrainerImport(request, std::move(script)).read();
}

}  // namespace trivium::planner::launch::forms
