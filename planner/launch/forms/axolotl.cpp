// axolotl's YAML (src/axolotl/utils/schemas/config.py of 067b021c, 2026-07-24).
#include <fmt/format.h>

#include <algorithm>

#include "base/quote.h"
#include "planner/launch/forms/forms.h"
#include "planner/launch/forms/hub.h"

namespace trivium::planner::launch::forms {
namespace {

using program::DType;
using program::Plan;

class AxolotlImport {
 public:
  AxolotlImport(const ImportRequest& request, const Document& document)
      : request_(request), settings_(yaml::settings_of(document.root), request.where), plan_(imported_.job.plan) {}

  Imported read() {
    const Argument* name = settings_.find({"base_model"});
    imported_.job.model = named_model(settings_, *name, request_);
    settings_.find({"base_model_config"});
    plan_.stack = settings_.is_on({"torch_compile"}) ? "torchtitan-fsdp2" : "torchtitan-fsdp2-eager";
    if (settings_.text({"fsdp_version"}).value_or("1") == "1") plan_.stack = "fsdp";
    split();
    attention();
    precision();
    adapters();
    if (settings_.has({"deepspeed"})) {
      deepspeed();
    } else {
      sharding();
    }
    training();
    if (is_on("gradient_checkpointing", false)) plan_.recompute = program::Recompute::kFull;
    lose_unread_keys(settings_,
                     {"datasets.",
                      "dataset_",
                      "test_datasets",
                      "val_set_size",
                      "output_dir",
                      "wandb_",
                      "mlflow_",
                      "comet_",
                      "logging_steps",
                      "saves_per",
                      "save_",
                      "evals_per",
                      "eval_",
                      "hub_",
                      "special_tokens",
                      "tokens",
                      "tokenizer_",
                      "resume_from",
                      "auto_resume",
                      "strict",
                      "chat_template",
                      "model_type",
                      "plugins",
                      "trust_remote",
                      "local_rank",
                      "early_stop",
                      "debug",
                      "group_by",
                      "train_on",
                      "pretraining_dataset",
                      "remove_unused",
                      "warmup_ratio",
                      "xformers",
                      "s2_attention",
                      "tf32",
                      "shuffle_",
                      "hf_use_auth",
                      "push_",
                      "load_best",
                      "gc_steps",
                      "fsdp_final",
                      "seed",
                      "lora_modules",
                      "gradient_checkpointing_kwargs",
                      "use_tensorboard",
                      "dataloader_",
                      "is_"},
                     imported_.losses);
    return std::move(imported_);
  }

 private:
  void lose(const char* name, std::string what) { imported_.losses.push_back({name, std::move(what)}); }
  bool is_on(const char* name, bool otherwise) {
    const auto text = settings_.text({name});
    return text ? *text != "false" : otherwise;
  }
  int degree(const char* name) {
    return static_cast<int>(settings_.count({name}, 1, kMostRanksOfADimension).value_or(1));
  }

  void split() {
    plan_.tensor = degree("tensor_parallel_size");
    plan_.context = std::max(degree("context_parallel_size"), degree("sequence_parallel_degree"));
    plan_.expert = degree("expert_parallel_size");
    const std::int64_t of_replica = std::int64_t{plan_.tensor} * plan_.context;
    if (request_.ranks < 1 || request_.ranks % of_replica != 0) {
      settings_.fail(fmt::format("{} processes are not a multiple of tensor {} x context {}", request_.ranks,
                                 plan_.tensor, plan_.context));
    }
    plan_.data = static_cast<int>(request_.ranks / of_replica);
    if (plan_.tensor > 1) lose("tensor_parallel_size", "without sequence parallelism, as transformers' tp_plan");
  }

  void attention() {
    plan_.attention = program::Attention::kFlash;
    const bool flash = is_on("flash_attention", false), sdp = is_on("sdp_attention", false);
    const std::string kind = settings_.text({"attn_implementation"}).value_or(flash || sdp ? "flash" : "sdpa");
    if (kind == "eager") plan_.attention = program::Attention::kUnfused;
    const bool packs = is_on("sample_packing", false);
    settings_.find({"pad_to_sequence_len"});
    if (packs) {
      lose("sample_packing", "samples are taken as full sequences whose tokens see each other");
    } else {
      lose("sample_packing", "off; samples are taken as full sequences, which is the most that a step can cost");
    }
  }

  void precision() {
    const bool fp16 = is_on("fp16", false) || is_on("float16", false);
    const std::string bf16 = settings_.text({"bf16", "bfloat16"}).value_or(fp16 ? "false" : "auto");
    plan_.precision = fp16 ? DType::kFp16 : bf16 == "false" ? DType::kFp32 : DType::kBf16;
    plan_.reduce_dtype = plan_.precision;
    if (is_on("fp8", false)) plan_.fp8 = program::Fp8::kCurrent;  // torchao's, by tensors
    settings_.find({"fp8_enable_fsdp_float8_all_gather"});
    for (const char* narrow : {"load_in_8bit", "load_in_4bit"}) {
      if (is_on(narrow, false)) lose(narrow, "frozen weights are taken in 16 bits");
    }
    for (const char* other : {"qat.weight_dtype", "quantization.weight_dtype"}) {
      if (settings_.has({other})) lose(other, "quantization-aware training is not modelled");
    }
  }

  void adapters() {
    const std::string kind = settings_.text({"adapter"}).value_or("");
    if (kind.empty()) return;
    constexpr std::int64_t kMostRank = 1 << 16;
    program::Lora& lora = imported_.job.training.lora;
    lora.rank = settings_.count({"lora_r"}, 1, kMostRank).value_or(8);
    lora.alpha = settings_.number({"lora_alpha"}).value_or(16);
    const double dropout = settings_.number({"lora_dropout"}).value_or(0);
    if (dropout > 0) lose("lora_dropout", fmt::format("{:g} taken as 0", dropout));
    lose("adapter", base::one_line(kind) + " taken as LoRA of every matrix of the layers");
    for (const char* other : {"lora_target_linear", "lora_target_modules", "lora_fan_in_fan_out", "lora_mlp_kernel",
                              "lora_qkv_kernel", "lora_o_kernel", "lora_model_dir"}) {
      settings_.find({other});
    }
  }

  /// fsdp_config's keys, with the prefix that older files have.
  std::string of_fsdp(const char* key, const char* otherwise) {
    const std::string name = std::string("fsdp_config.") + key, older = std::string("fsdp_config.fsdp_") + key;
    return settings_.text({name.c_str(), older.c_str()}).value_or(otherwise);
  }

  void sharding() {
    const auto of_config = [](const Argument& argument) { return argument.name.starts_with("fsdp_config"); };
    const bool is_fsdp = settings_.has({"fsdp"}) || settings_.has({"dp_shard_size"}) ||
                         std::ranges::any_of(settings_.script().arguments, of_config);
    const Argument* words = settings_.find({"fsdp"});
    plan_.overlap.gradient_reduction = plan_.data * plan_.context > 1;
    if (!is_fsdp || plan_.data * plan_.context == 1) {
      plan_.reduce_dtype = DType::kFp32;
      return;
    }
    const std::string strategy = of_fsdp("sharding_strategy", "FULL_SHARD");
    plan_.zero_stage = strategy == "SHARD_GRAD_OP" || of_fsdp("reshard_after_forward", "true") == "false" ? 2 : 3;
    plan_.overlap.parameter_gather = true;
    const bool offloads = words != nullptr && std::ranges::find(words->values, "offload") != words->values.end();
    if (offloads || of_fsdp("offload_params", "false") == "true") {
      plan_.offload.optimizer = plan_.offload.gradients = plan_.offload.parameters = program::Storage::kHost;
    }
    if (of_fsdp("activation_checkpointing", "false") == "true") plan_.recompute = program::Recompute::kFull;
    constexpr std::int64_t kMostReplicas = 1 << 20;
    const auto copies = static_cast<int>(settings_.count({"dp_replicate_size"}, 1, kMostReplicas).value_or(1));
    const Argument* shard = settings_.find({"dp_shard_size"});
    const std::int64_t shards = settings_.count({"dp_shard_size"}, 1, kMostReplicas).value_or(plan_.data / copies);
    if (shard != nullptr && std::int64_t{copies} * shards != plan_.data) {
      settings_.fail_at(*shard, fmt::format("dp_replicate_size {} x dp_shard_size {} are not the {} replicas of {} "
                                            "processes; give --ranks",
                                            copies, shards, plan_.data, request_.ranks));
    }
    if (copies > 1) plan_.shard_group = std::max(1, plan_.data / copies) * plan_.context;
    for (const char* beside : {"auto_wrap_policy", "transformer_layer_cls_to_wrap", "state_dict_type",
                               "use_orig_params", "cpu_ram_efficient_loading", "sync_module_states",
                               "limit_all_gathers", "final_state_dict_type", "version", "backward_prefetch"}) {
      of_fsdp(beside, "");
    }
  }

  // The JSON says the stage and what is offloaded; its batches are "auto".
  void deepspeed() {
    const std::string file = settings_.text({"deepspeed"}).value_or("");
    ImportRequest json = request_;
    json.model = imported_.job.model;
    json.where = base::one_line(file);
    const auto content = request_.surroundings.read_file ? request_.surroundings.read_file(file) : std::nullopt;
    if (!content || content->find('{') == std::string::npos) {
      settings_.fail_at(*settings_.find({"deepspeed"}), base::quote(file) + " is not there");
    }
    json.text = *content;
    const Imported read = import_deepspeed(json);
    plan_.stack = read.job.plan.stack;
    plan_.zero_stage = read.job.plan.zero_stage;
    plan_.offload = read.job.plan.offload;
    plan_.overlap = read.job.plan.overlap;
    plan_.reduce_dtype = plan_.precision;
  }

  void training() {
    program::Training& t = imported_.job.training;
    const std::int64_t longest = imported_.job.model.max_sequence;
    t.sequence = request_.sequence > 0
                     ? request_.sequence
                     : settings_.count({"sequence_len"}).value_or(std::min<std::int64_t>(longest, 512));
    plan_.micro_batch = static_cast<int>(settings_.count({"micro_batch_size"}, 1, kMostSamples).value_or(1));
    const auto steps = settings_.count({"gradient_accumulation_steps"}, 1, kMostAccumulated).value_or(1);
    t.global_batch = std::int64_t{plan_.micro_batch} * steps * plan_.data;
    if (request_.global_batch > 0) t.global_batch = request_.global_batch;
    const auto most = settings_.count({"max_steps"}, 0);
    if (most) t.total_tokens = tokens_of(*most, t);
    settings_.find({"num_epochs"});
    program::Optimizer& o = t.optimizer;
    const std::string kind = settings_.text({"optimizer"}).value_or("adamw_torch_fused");
    if (kind.find("adamw") == std::string::npos) lose("optimizer", base::one_line(kind) + " taken as AdamW");
    if (kind.find("8bit") != std::string::npos) lose("optimizer", "moments of 8 bits are taken as fp32");
    o.learning_rate = settings_.number({"learning_rate"}).value_or(o.learning_rate);
    o.weight_decay = settings_.number({"weight_decay"}).value_or(0);
    o.clip_norm = settings_.number({"max_grad_norm"}).value_or(1);
    const double warmup = std::min(settings_.number({"warmup_steps"}).value_or(0), 1e9);  // below 1: a share
    o.warmup_steps = static_cast<std::int64_t>(warmup);
    o.beta1 = settings_.number({"adam_beta1"}).value_or(0.9);
    o.beta2 = settings_.number({"adam_beta2"}).value_or(0.999);
    o.epsilon = settings_.number({"adam_epsilon"}).value_or(1e-8);
    const std::string decay = settings_.text({"lr_scheduler"}).value_or("cosine");
    if (decay != "cosine") lose("lr_scheduler", base::one_line(decay) + " taken as cosine");
    const std::string reinforces = settings_.text({"rl"}).value_or("");
    if (!reinforces.empty()) lose("rl", base::one_line(reinforces) + " taken as supervised training");
  }

  const ImportRequest& request_;
  Imported imported_;
  Settings settings_;
  Plan& plan_;
};

}  // namespace

bool is_axolotl(const yaml::Node& root) {
  return root.has("base_model") && (root.has("micro_batch_size") || root.has("datasets") || root.has("sequence_len"));
}

Imported import_axolotl(const ImportRequest& request, const Document& document) {
  return AxolotlImport(request, document).read();
}

}  // namespace trivium::planner::launch::forms
