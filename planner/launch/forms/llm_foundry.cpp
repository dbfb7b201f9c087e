// LLM Foundry's YAML (scripts/train/train.py of 8c8dd48f, 2025-07-21).
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/quote.h"
#include "planner/launch/forms/forms.h"
#include "planner/launch/forms/hub.h"

namespace trivium::planner::launch::forms {
namespace {

using program::DType;
using program::Plan;

/// `${variables.max_seq_len}` by the value of that name, as OmegaConf does.
Script resolved(const yaml::Node& root) {
  const yaml::Node* parameters = root.find("parameters");
  Script script = yaml::settings_of(parameters != nullptr && parameters->is_map() ? *parameters : root);
  constexpr int kMostSteps = 8;
  const std::vector<Argument> known = script.arguments;
  for (Argument& argument : script.arguments) {
    for (int step = 0; step < kMostSteps && argument.values.size() == 1; ++step) {
      std::string& value = argument.values.front();
      if (!value.starts_with("${") || !value.ends_with('}')) break;
      const std::string name = value.substr(2, value.size() - 3);
      const auto found = std::ranges::find(known, name, &Argument::name);
      if (found == known.end() || found->values.size() != 1) break;
      value = found->values.front();
    }
  }
  // Both spellings of MosaicML's own platform: a job's parameters, or the file itself.
  std::erase_if(script.arguments, [](const Argument& argument) { return argument.name.starts_with("variables."); });
  return script;
}

class FoundryImport {
 public:
  FoundryImport(const ImportRequest& request, const Document& document)
      : request_(request), settings_(resolved(document.root), request.where), plan_(imported_.job.plan) {}

  Imported read() {
    imported_.job.model = model();
    plan_.data = std::max(1, request_.ranks);
    plan_.stack = "fsdp-flash2";
    plan_.attention = program::Attention::kFlash;
    if (settings_.text({"model.attn_config.attn_impl", "model.attn_impl"}).value_or("flash") == "torch") {
      plan_.attention = program::Attention::kUnfused;
    }
    precision();
    sharding();
    training();
    lose_unread_keys(settings_,
                     {"run_name",
                      "save_",
                      "load_",
                      "loggers",
                      "tokenizer",
                      "train_loader",
                      "eval_loader",
                      "eval_",
                      "device_eval",
                      "progress_bar",
                      "log_to",
                      "console",
                      "callbacks",
                      "python_log",
                      "dist_timeout",
                      "model.init_device",
                      "model.pretrained",
                      "model.use_auth",
                      "model.config_overrides.attn_config",
                      "data_",
                      "autoresume",
                      "icl_",
                      "seed",
                      "expandable",
                      "max_split",
                      "model.tokenizer",
                      "compile_config.",
                      "fsdp_config.limit_all",
                      "fsdp_config.verbose",
                      "fsdp_config.state_dict",
                      "fsdp_config.use_orig",
                      "fsdp_config.load_",
                      "fsdp_config.sync_module",
                      "fsdp_config.activation_checkpointing_reentrant",
                      "fsdp_config.cpu_offload",
                      "profiler",
                      "only_",
                      "exp",
                      "global_seed",
                      "metadata"},
                     imported_.losses);
    return std::move(imported_);
  }

 private:
  void lose(const char* name, std::string what) { imported_.losses.push_back({name, std::move(what)}); }
  bool is_on(const char* name, bool otherwise) {
    const auto text = settings_.text({name});
    return text ? *text == "true" : otherwise;
  }

  models::Model model() {
    const std::string kind = settings_.text({"model.name"}).value_or("");
    if (kind == "mpt_causal_lm") return mpt();
    if (request_.model) return *request_.model;
    const Argument* name = settings_.find({"model.pretrained_model_name_or_path"});
    if (name == nullptr) settings_.fail(fmt::format("model.name {} is not known; give --model", base::quote(kind)));
    if (kind != "hf_causal_lm") lose("model.name", base::one_line(kind) + " taken as hf_causal_lm");
    settings_.find({"model.use_flash_attention_2"});
    return named_model(settings_, *name, request_);
  }

  // llmfoundry/models/mpt/configuration_mpt.py: LayerNorm, GELU, biases, learned positions or ALiBi, tied embeddings.
  models::Model mpt() {
    models::Model m;
    m.name = "imported";
    m.source = request_.where;
    m.hidden = settings_.count({"model.d_model"}).value_or(2048);
    m.heads = settings_.count({"model.n_heads"}).value_or(16);
    m.layers = settings_.count({"model.n_layers"}).value_or(24);
    m.vocab = settings_.count({"model.vocab_size"}).value_or(50'368);
    m.max_sequence = settings_.count({"model.max_seq_len"}).value_or(2048);
    m.kv_heads = settings_.count({"model.attn_config.kv_n_heads"}).value_or(0);
    const std::string attention = settings_.text({"model.attn_config.attn_type"}).value_or("multihead_attention");
    if (attention == "multiquery_attention") m.kv_heads = 1;
    constexpr double kMostTimes = 1e4;
    const double ratio = std::min(settings_.number({"model.expansion_ratio"}).value_or(4), kMostTimes);
    m.ffn_hidden = settings_.count({"model.ffn_config.ffn_hidden_size"})
                       .value_or(static_cast<std::int64_t>(ratio * static_cast<double>(m.hidden)));
    m.positions = is_on("model.learned_pos_emb", true) ? models::Positions::kLearned : models::Positions::kNone;
    if (is_on("model.attn_config.alibi", is_on("model.alibi", false))) m.positions = models::Positions::kAlibi;
    if (is_on("model.attn_config.rope", false)) m.positions = models::Positions::kRotary;
    m.rotary.theta = settings_.number({"model.attn_config.rope_theta"}).value_or(m.rotary.theta);
    m.linear_bias = m.qkv_bias = !is_on("model.no_bias", false);
    const std::string norm = settings_.text({"model.norm_type"}).value_or("low_precision_layernorm");
    m.norm = norm.find("rms") != std::string::npos ? models::Norm::kRmsNorm : models::Norm::kLayerNorm;
    m.tied_embeddings = is_on("model.tie_word_embeddings", true);
    m.head_norms = is_on("model.attn_config.qk_ln", false);
    if (m.head_norms) lose("model.attn_config.qk_ln", "taken as a norm of every head");
    if (settings_.text({"model.ffn_config.ffn_type"}).value_or("mptmlp") == "mptglu")
      m.activation = models::Activation::kSwiglu;
    experts(m);
    return request_.model ? *request_.model : settled(m, request_.where);
  }

  void experts(models::Model& m) {
    const auto count = settings_.count({"model.ffn_config.moe_num_experts"});
    if (!count || *count < 2) return;
    models::Experts e;
    e.count = *count;
    e.top_k = settings_.count({"model.ffn_config.moe_top_k"}).value_or(1);
    e.dropless = settings_.text({"model.ffn_config.ffn_type"}).value_or("mb_moe") == "mb_dmoe";
    const auto spread = settings_.count({"model.ffn_config.moe_world_size"}, 1, kMostRanksOfADimension);
    plan_.expert = static_cast<int>(spread.value_or(1));
    m.experts = e;
  }

  // composer/core/precision.py; composer/distributed: PURE holds and reduces in 16 bits, DEFAULT reduces in 32.
  void precision() {
    const std::string width = settings_.text({"precision"}).value_or("amp_bf16");
    plan_.precision = width.find("fp16") != std::string::npos   ? DType::kFp16
                      : width.find("fp32") != std::string::npos ? DType::kFp32
                                                                : DType::kBf16;
    if (width == "amp_fp8") {
      plan_.precision = DType::kBf16;
      plan_.fp8 = program::Fp8::kDelayed;
    }
    const std::string mixed = settings_.text({"fsdp_config.mixed_precision"}).value_or("DEFAULT");
    plan_.reduce_dtype = mixed == "PURE" ? plan_.precision : DType::kFp32;
    if (mixed == "FULL") plan_.precision = DType::kFp32;
  }

  void sharding() {
    const bool is_fsdp = std::ranges::any_of(settings_.script().arguments, [](const Argument& argument) {
      return argument.name.starts_with("fsdp_config.") || argument.name.starts_with("parallelism_config.fsdp.");
    });
    const std::string strategy = settings_.text({"fsdp_config.sharding_strategy"}).value_or("FULL_SHARD");
    plan_.zero_stage = !is_fsdp || strategy == "NO_SHARD" ? 0 : strategy == "SHARD_GRAD_OP" ? 2 : 3;
    if (strategy == "HYBRID_SHARD" && request_.devices_per_node > 0 && request_.devices_per_node < plan_.data &&
        plan_.data % request_.devices_per_node == 0) {
      plan_.shard_group = request_.devices_per_node;
    }
    if (plan_.data == 1) plan_.zero_stage = plan_.shard_group = 0;
    plan_.overlap.gradient_reduction = plan_.data > 1;
    plan_.overlap.parameter_gather = plan_.zero_stage > 0;
    if (is_on("fsdp_config.activation_checkpointing", false)) plan_.recompute = program::Recompute::kFull;
    if (is_on("fsdp_config.activation_cpu_offload", false)) plan_.offload.activations = program::Storage::kHost;
    const std::string prefetch = settings_.text({"fsdp_config.backward_prefetch"}).value_or("BACKWARD_POST");
    if (prefetch == "NO_PREFETCH") plan_.overlap.parameter_gather = false;
    const auto tensor = settings_.count({"tp_config.tensor_parallel_degree"}, 1, kMostRanksOfADimension).value_or(1);
    if (tensor > 1) lose("tp_config", "tensor parallelism of Composer is not read; taken as 1");
  }

  /// "63900ba" -> 63900 steps; tokens of "134e9tok"; nothing of epochs.
  void duration() {
    program::Training& t = imported_.job.training;
    const std::string text = settings_.text({"max_duration"}).value_or("");
    double number = 0;
    char unit[8] = {};
    if (std::sscanf(text.c_str(), "%lf%7s", &number, unit) < 1 || !(number >= 0) || number > 1e18) return;
    const std::string name = unit;
    if (name == "ba") t.total_tokens = tokens_of(static_cast<std::int64_t>(std::min(number, 1e12)), t);
    if (name == "tok") t.total_tokens = static_cast<std::int64_t>(number);
    if (name != "ba" && name != "tok") lose("max_duration", base::one_line(text) + " depends on the data");
  }

  void training() {
    program::Training& t = imported_.job.training;
    t.sequence = settings_.count({"max_seq_len"}).value_or(imported_.job.model.max_sequence);
    if (request_.sequence > 0) t.sequence = request_.sequence;
    t.global_batch = settings_.count({"global_train_batch_size"}).value_or(plan_.data);
    if (request_.global_batch > 0) t.global_batch = request_.global_batch;
    const std::string micro = settings_.text({"device_train_microbatch_size"}).value_or("auto");
    if (micro == "auto") {
      plan_.micro_batch = 1;
      lose("device_train_microbatch_size", "auto taken as 1: Composer tries what fits");
    } else {
      plan_.micro_batch = static_cast<int>(*settings_.count({"device_train_microbatch_size"}, 1, kMostSamples));
      const std::int64_t of_rank = std::max<std::int64_t>(1, t.global_batch / plan_.data);
      if (plan_.micro_batch > of_rank) plan_.micro_batch = static_cast<int>(of_rank);
    }
    duration();
    program::Optimizer& o = t.optimizer;
    const std::string kind = settings_.text({"optimizer.name"}).value_or("decoupled_adamw");
    if (kind != "decoupled_adamw") lose("optimizer.name", base::one_line(kind) + " taken as decoupled_adamw");
    o.learning_rate = settings_.number({"optimizer.lr"}).value_or(o.learning_rate);
    o.epsilon = settings_.number({"optimizer.eps"}).value_or(o.epsilon);
    o.weight_decay = settings_.number({"optimizer.weight_decay"}).value_or(o.weight_decay);
    if (const Argument* betas = settings_.find({"optimizer.betas"}); betas != nullptr && betas->values.size() == 2) {
      std::sscanf(betas->values[0].c_str(), "%lf", &o.beta1);
      std::sscanf(betas->values[1].c_str(), "%lf", &o.beta2);
    }
    o.clip_norm = settings_.number({"algorithms.gradient_clipping.clipping_threshold"}).value_or(o.clip_norm);
    o.min_learning_rate = o.learning_rate * std::min(1.0, settings_.number({"scheduler.alpha_f"}).value_or(0));
    for (const char* beside : {"algorithms.gradient_clipping.clipping_type", "scheduler.name", "scheduler.t_warmup"}) {
      settings_.find({beside});
    }
  }

  const ImportRequest& request_;
  Imported imported_;
  Settings settings_;
  Plan& plan_;
};

}  // namespace

bool is_llm_foundry(const yaml::Node& root) {
  const yaml::Node* parameters = root.find("parameters");
  const yaml::Node& at = parameters != nullptr && parameters->is_map() ? *parameters : root;
  return at.has("model") && at.has("train_loader") && (at.has("max_duration") || at.has("global_train_batch_size"));
}

Imported import_llm_foundry(const ImportRequest& request, const Document& document) {
  return FoundryImport(request, document).read();
}

}  // namespace trivium::planner::launch::forms
