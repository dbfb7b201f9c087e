// GPT-NeoX's YAML (megatron/neox_arguments/neox_args.py): one file, or the one that holds model and split.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/quote.h"
#include "planner/launch/forms/forms.h"

namespace trivium::planner::launch::forms {
namespace {

using models::Activation;
using models::Model;
using program::DType;
using program::Plan;

/// Keys may have dashes, as older files do.
Script neox_settings(const yaml::Node& root) {
  Script script = yaml::settings_of(root);
  for (Argument& argument : script.arguments) std::ranges::replace(argument.name, '-', '_');
  return script;
}

class NeoxImport {
 public:
  NeoxImport(const ImportRequest& request, const Document& document)
      : request_(request),
        settings_(neox_settings(document.root), request.where),
        attention_(document.root.find("attention_config") != nullptr ? document.root.find("attention_config")
                                                                     : document.root.find("attention-config")),
        plan_(imported_.job.plan) {}

  Imported read() {
    imported_.job.model = model();
    split();
    batch();
    optimizer();
    precision();
    zero();
    memory();
    plan_.stack = "megatron-deepspeed";
    lose_unread_keys(settings_,
                     {"data",
                      "train_data",
                      "valid_data",
                      "test_data",
                      "split",
                      "save",
                      "load",
                      "checkpoint_factor",
                      "eval",
                      "log",
                      "vocab_file",
                      "merge_file",
                      "tensorboard",
                      "wandb",
                      "use_wandb",
                      "comet",
                      "use_comet",
                      "steps_per_print",
                      "wall_clock",
                      "keep_last",
                      "distributed_backend",
                      "hostfile",
                      "launcher",
                      "tokenizer",
                      "init_method",
                      "output_layer_init",
                      "scaled_upper",
                      "scaled_masked",
                      "bias_gelu",
                      "bias_dropout",
                      "rope_fusion",
                      "layernorm_fusion",
                      "rmsnorm_fusion",
                      "synchronize",
                      "partition_activations",
                      "output_layer_parallelism",
                      "checkpoint_validation",
                      "num_workers",
                      "extra_save",
                      "deepspeed_slurm",
                      "comment",
                      "master",
                      "include",
                      "exclude",
                      "no_ssh",
                      "do_",
                      "label",
                      "weight_by",
                      "finetune",
                      "fp16.",
                      "checkpoint_scale",
                      "checkpoint_in_cpu",
                      "attention_config",
                      "dataset_impl",
                      "mmap",
                      "pack_impl",
                      "shuffle",
                      "optimizer.params.freeze"},
                     imported_.losses);
    return std::move(imported_);
  }

 private:
  void lose(const char* name, std::string what) { imported_.losses.push_back({name, std::move(what)}); }
  std::int64_t needed(const char* name) {
    if (const auto value = settings_.count({name})) return *value;
    settings_.fail(std::string(name) + " is missing; give --model, or the file that has it");
  }
  bool is_on(const char* name, bool otherwise) {
    const auto text = settings_.text({name});
    return text ? *text == "true" : otherwise;
  }

  Model model() {
    kinds_of_attention();
    Model m;
    m.name = "imported";
    m.source = request_.where;
    if (request_.model) return *request_.model;
    m.layers = needed("num_layers");
    m.hidden = needed("hidden_size");
    m.heads = needed("num_attention_heads");
    m.kv_heads = settings_.count({"num_kv_heads"}).value_or(0);
    m.head_dim = settings_.count({"head_dim"}).value_or(0);
    m.max_sequence = settings_.count({"max_position_embeddings"}).value_or(0);
    if (m.max_sequence == 0) m.max_sequence = needed("seq_length");
    m.vocab = vocabulary();
    layers(m);
    widths(m);
    experts(m);
    return settled(m, request_.where);
  }

  void layers(Model& m) {
    const std::string norm = settings_.text({"norm"}).value_or("layernorm");
    m.norm = norm.find("rms") != std::string::npos ? models::Norm::kRmsNorm : models::Norm::kLayerNorm;
    if (norm == "scalenorm") lose("norm", "scalenorm taken as layernorm");
    const auto of_rms = settings_.number({"rms_norm_epsilon"}), of_layer = settings_.number({"layernorm_epsilon"});
    m.norm_epsilon = m.norm == models::Norm::kRmsNorm ? of_rms.value_or(1e-8) : of_layer.value_or(1e-5);
    const std::string positions = settings_.text({"pos_emb"}).value_or("learned");
    m.positions = positions == "rotary"    ? models::Positions::kRotary
                  : positions == "alibi"   ? models::Positions::kAlibi
                  : positions == "learned" ? models::Positions::kLearned
                                           : models::Positions::kNone;
    if (positions == "sinusoidal" || positions == "rpe") lose("pos_emb", positions + " taken as none");
    m.rotary.share = settings_.number({"rotary_pct"}).value_or(1);
    m.rotary.theta = settings_.number({"rotary_emb_base"}).value_or(m.rotary.theta);
    if (m.positions != models::Positions::kRotary) m.rotary = {};
    m.parallel_block = is_on("gpt_j_residual", false);
    m.shared_norm = !m.parallel_block || is_on("gpt_j_tied", false);
    m.tied_embeddings = !is_on("no_weight_tying", false);
    m.qkv_bias = is_on("use_bias_in_attn_linear", true);
    m.linear_bias = is_on("use_bias_in_mlp", m.qkv_bias);
    m.head_norms = is_on("use_qk_layernorm", false);
    settings_.find({"use_bias_in_norms"});
    settings_.find({"make_vocab_size_divisible_by"});
    if (m.qkv_bias != m.linear_bias) lose("use_bias_in_attn_linear", "the output of attention has a bias as the MLP");
    if (const auto keys = settings_.count({"sliding_window_width"}); keys && *keys < m.max_sequence) {
      m.window = models::Window{.keys = *keys};
    }
  }

  // megatron/model/transformer.py, ParallelMLP: a gated one has a third of twice the width, in multiples of 256.
  void widths(Model& m) {
    const std::string activation = settings_.text({"activation"}).value_or("gelu");
    const bool gated = activation.ends_with("glu") || activation == "bilinear";
    m.activation = activation == "swiglu" ? Activation::kSwiglu
                   : gated                ? Activation::kGeglu
                   : activation == "relu" ? Activation::kRelu
                                          : Activation::kGelu;
    const bool is_other =
        activation != "swiglu" && activation != "geglu" && activation != "relu" && activation != "gelu";
    if (is_other) lose("activation", base::one_line(activation) + (gated ? " taken as geglu" : " taken as gelu"));
    constexpr double kMostTimes = 1e4;
    const double factor = std::min(settings_.number({"expansion_factor"}).value_or(4), kMostTimes);
    std::int64_t width = settings_.count({"intermediate_size"})
                             .value_or(static_cast<std::int64_t>(factor * static_cast<double>(m.hidden)));
    settings_.find({"mlp_multiple_of"});
    constexpr std::int64_t kMultiple = 256;
    if (gated) width = width * 2 / 3 / 2;
    m.ffn_hidden = (width + kMultiple - 1) / kMultiple * kMultiple;
  }

  void experts(Model& m) {
    const auto count = settings_.count({"moe_num_experts"});
    if (!count || *count < 2) return;
    models::Experts e;
    e.count = *count;
    e.top_k = settings_.count({"moe_top_k"}).value_or(1);
    e.every = settings_.count({"moe_expert_interval", "expert_interval"}).value_or(1);
    e.dropless = true;  // MegaBlocks (megatron/model/moe.py)
    m.experts = e;
  }

  std::int64_t vocabulary() {
    constexpr std::int64_t kGpt2 = 50257, kNeox = 50277;
    if (const auto given = settings_.count({"padded_vocab_size"})) return *given;
    const std::string kind = settings_.text({"tokenizer_type"}).value_or("GPT2BPETokenizer");
    const std::int64_t size = kind == "HFTokenizer" ? kNeox : kGpt2;
    lose("vocab", fmt::format("follows from the tokenizer; taken as {} words", size));
    return size;
  }

  /// [[["flash"], 24]]: the kinds of all layers.
  void kinds_of_attention() {
    plan_.attention = program::Attention::kUnfused;
    if (attention_ == nullptr) return;
    const Script words = yaml::settings_of(*attention_);
    for (const Argument& argument : words.arguments) {
      for (const std::string& word : argument.values) {
        if (word == "flash") plan_.attention = program::Attention::kFlash;
        if (word == "mamba" || word == "rwkv" || word == "gmlp" || word == "amlp") {
          settings_.fail(fmt::format("layers of {} are not modelled", word));
        }
        const bool is_sparse = word.find("sparse") != std::string::npos || word == "local" || word == "bigbird";
        if (is_sparse) lose("attention_config", base::one_line(word) + " taken as full attention");
      }
    }
  }

  int degree(const char* name) {
    return static_cast<int>(std::max<std::int64_t>(1, settings_.count({name}, 0, kMostRanksOfADimension).value_or(1)));
  }

  void split() {
    plan_.pipeline = degree("pipe_parallel_size");
    plan_.tensor = degree("model_parallel_size");
    plan_.sequence_parallel = is_on("sequence_parallel", false) && plan_.tensor > 1;
    plan_.expert = degree("moe_expert_parallel_size");
    plan_.context = degree("context_parallel_size");
    const int of_replica = plan_.tensor * plan_.pipeline * plan_.context;
    if (request_.ranks < 1 || request_.ranks % of_replica != 0) {
      settings_.fail(fmt::format("{} processes are not a multiple of tensor {} x pipeline {}", request_.ranks,
                                 plan_.tensor, plan_.pipeline));
    }
    plan_.data = request_.ranks / of_replica;
  }

  void batch() {
    program::Training& t = imported_.job.training;
    t.sequence = request_.sequence > 0 ? request_.sequence
                                       : settings_.count({"seq_length"}).value_or(imported_.job.model.max_sequence);
    const auto whole = settings_.count({"train_batch_size"});
    const auto steps = settings_.count({"gradient_accumulation_steps"}, 1, kMostAccumulated);
    const auto micro = settings_.count({"train_micro_batch_size_per_gpu"}, 1, kMostSamples);
    const std::int64_t of_step = std::int64_t{plan_.data} * steps.value_or(1);
    if (micro) plan_.micro_batch = static_cast<int>(*micro);
    if (!micro && whole) plan_.micro_batch = static_cast<int>(std::max<std::int64_t>(1, *whole / of_step));
    if (!micro && !whole) lose("train_micro_batch_size_per_gpu", "is not in the file; taken as 1");
    t.global_batch = whole.value_or(plan_.micro_batch * of_step);
    if (request_.global_batch > 0) t.global_batch = request_.global_batch;
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    t.total_tokens = tokens_of(settings_.count({"train_iters"}, 0, kMost).value_or(0), t);
    t.dropout = settings_.number({"hidden_dropout"}).value_or(0);
    if (settings_.number({"attention_dropout"}).value_or(0) != t.dropout) {
      lose("attention_dropout", "taken as hidden_dropout");
    }
    t.seed = static_cast<std::uint64_t>(settings_.count({"seed"}, 0, kMost).value_or(1234));
  }

  void optimizer() {
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    program::Training& t = imported_.job.training;
    program::Optimizer& o = t.optimizer;
    const std::string type = settings_.text({"optimizer.type"}).value_or("Adam");
    if (type != "Adam" && type != "AdamW") lose("optimizer.type", base::one_line(type) + " taken as AdamW");
    o.learning_rate = settings_.number({"optimizer.params.lr", "lr"}).value_or(o.learning_rate);
    o.epsilon = settings_.number({"optimizer.params.eps"}).value_or(o.epsilon);
    if (const Argument* betas = settings_.find({"optimizer.params.betas"}); betas != nullptr) {
      if (betas->values.size() != 2 || std::sscanf(betas->values[0].c_str(), "%lf", &o.beta1) != 1 ||
          std::sscanf(betas->values[1].c_str(), "%lf", &o.beta2) != 1) {
        settings_.fail_at(*betas, "betas must be two numbers");
      }
    }
    o.min_learning_rate = settings_.number({"min_lr"}).value_or(0);
    o.weight_decay = settings_.number({"weight_decay"}).value_or(o.weight_decay);
    o.clip_norm = settings_.number({"gradient_clipping", "clip_grad"}).value_or(o.clip_norm);
    const auto steps = settings_.count({"train_iters"}, 0, kMost).value_or(0);
    const double warmup = settings_.number({"warmup"}).value_or(0.01);
    o.warmup_steps = static_cast<std::int64_t>(std::min(warmup, 1.0) * static_cast<double>(steps));
    o.decay_steps = settings_.count({"lr_decay_iters"}, 0, kMost).value_or(0);
    const std::string decay = settings_.text({"lr_decay_style"}).value_or("cosine");
    if (decay != "cosine") lose("lr_decay_style", base::one_line(decay) + " taken as cosine");
  }

  void precision() {
    const std::string width = settings_.text({"precision"}).value_or("");
    const bool bf16_on = is_on("bf16.enabled", false), fp16_on = is_on("fp16.enabled", false);
    const bool bf16 = width == "bfloat16" || bf16_on, fp16 = width == "fp16" || fp16_on;
    plan_.precision = bf16 ? DType::kBf16 : fp16 ? DType::kFp16 : DType::kFp32;
    plan_.reduce_dtype = is_on("fp32_allreduce", false) ? DType::kFp32 : plan_.precision;
    const std::string accumulates = settings_.text({"data_types.grad_accum_dtype"}).value_or("");
    if (accumulates == "fp32") plan_.reduce_dtype = DType::kFp32;
  }

  void zero() {
    plan_.zero_stage = static_cast<int>(settings_.count({"zero_optimization.stage"}, 0, 3).value_or(0));
    plan_.overlap.gradient_reduction = is_on("zero_optimization.overlap_comm", false);
    plan_.overlap.parameter_gather = false;  // as deepspeed_import.cpp
    if (const auto elements = settings_.number({"zero_optimization.reduce_bucket_size"});
        elements && *elements < 1e13) {
      plan_.bucket_bytes = static_cast<std::int64_t>(*elements) * program::size_of(plan_.reduce_dtype);
    }
    const bool offloads = is_on("zero_optimization.cpu_offload", false) ||
                          settings_.text({"zero_optimization.offload_optimizer.device"}).value_or("none") == "cpu";
    if (offloads) plan_.offload.optimizer = program::Storage::kHost;
    if (offloads && plan_.zero_stage >= 2) plan_.offload.gradients = program::Storage::kHost;
    if (settings_.text({"zero_optimization.offload_param.device"}).value_or("none") == "cpu") {
      plan_.offload.parameters = program::Storage::kHost;
    }
    for (const char* beside : {"zero_optimization.allgather_partitions", "zero_optimization.allgather_bucket_size",
                               "zero_optimization.reduce_scatter", "zero_optimization.contiguous_gradients"}) {
      settings_.find({beside});
    }
    // Its optimizer of bf16 shards states whatever the stage (as deepspeed_import.cpp).
    if (plan_.precision == DType::kBf16 && plan_.zero_stage == 0 && plan_.pipeline > 1) plan_.zero_stage = 1;
  }

  void memory() {
    const auto together = settings_.count({"checkpoint_num_layers"});
    if (is_on("checkpoint_activations", false)) {
      plan_.recompute = program::Recompute::kFull;
      plan_.recompute_group = static_cast<int>(together.value_or(1));
    }
  }

  const ImportRequest& request_;
  Imported imported_;
  Settings settings_;
  const yaml::Node* attention_;
  Plan& plan_;
};

}  // namespace

bool is_gpt_neox(const yaml::Node& root) {
  const auto has = [&](const char* name, const char* older) { return root.has(name) || root.has(older); };
  return has("num_layers", "num-layers") &&
         (has("pipe_parallel_size", "pipe-parallel-size") || has("model_parallel_size", "model-parallel-size") ||
          has("train_micro_batch_size_per_gpu", "train-micro-batch-size-per-gpu"));
}

Imported import_gpt_neox(const ImportRequest& request, const Document& document) {
  return NeoxImport(request, document).read();
}

}  // namespace trivium::planner::launch::forms
