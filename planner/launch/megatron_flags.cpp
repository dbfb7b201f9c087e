// The model's shape and its training as Megatron's flags, which Megatron-LM and Megatron-DeepSpeed share but for a few
// names.
#include <fmt/format.h>

#include "planner/launch/export_parts.h"

namespace trivium::planner::launch {
namespace {

using models::Activation;
using models::Model;
using models::Positions;

class ModelFlags {
 public:
  ModelFlags(const Model& model, Trainer trainer, std::vector<Loss>& losses)
      : model_(model), is_megatron_(trainer == Trainer::kMegatron), losses_(losses) {}

  std::vector<Argument> write() {
    add("num-layers", model_.layers);
    add("hidden-size", model_.hidden);
    add("num-attention-heads", model_.heads);
    add("ffn-hidden-size", model_.dense_hidden());
    if (model_.head_dim * model_.heads != model_.hidden) add("kv-channels", model_.head_dim);
    add("max-position-embeddings", model_.max_sequence);
    kv_groups();
    positions();
    const bool is_rms = model_.norm == models::Norm::kRmsNorm;
    flags_.push_back({"normalization",
                      {is_megatron_ ? is_rms ? "RMSNorm" : "LayerNorm"
                       : is_rms     ? "rmsnorm"
                                    : "layernorm"}});
    activation();
    numbers();
    biases();
    if (!model_.tied_embeddings) flags_.push_back({"untie-embeddings-and-output-weights", {}});
    embedding_norm();
    if (model_.parallel_block) losses_.push_back({"parallel_block", "attention and MLP run one after the other"});
    if (model_.latent) latents(*model_.latent);
    if (model_.mtp) multi_token(*model_.mtp);
    if (model_.experts) experts(*model_.experts);
    return std::move(flags_);
  }

 private:
  void add(const char* name, std::int64_t value) { flags_.push_back({name, {std::to_string(value)}}); }

  void kv_groups() {
    if (model_.kv_heads == model_.heads) return;
    if (is_megatron_) {
      flags_.push_back({"group-query-attention", {}});
      add("num-query-groups", model_.kv_heads);
    } else {
      add("num-key-value-heads", model_.kv_heads);
    }
  }

  void embedding_norm() {
    if (!model_.embedding_norm) return;
    if (is_megatron_) {
      losses_.push_back({"embedding_norm", "tokens go to the first layer as they are looked up"});
    } else {
      flags_.push_back({"embed-layernorm", {}});
    }
  }

  void positions() {
    if (!is_megatron_) {
      if (model_.positions == Positions::kNone) flags_.push_back({"no-position-embedding", {}});
      if (model_.positions == Positions::kAlibi) flags_.push_back({"position-embedding-type", {"alibi"}});
      if (model_.positions != Positions::kRotary) return;
      flags_.push_back({"use-rotary-position-embeddings", {}});
      return rotary();
    }
    const char* name = model_.positions == Positions::kLearned  ? "learned_absolute"
                       : model_.positions == Positions::kRotary ? "rope"
                                                                : "none";
    flags_.push_back({"position-embedding-type", {name}});
    if (model_.positions == Positions::kRotary) rotary();
    if (model_.positions == Positions::kAlibi) losses_.push_back({"positions", "none in place of ALiBi"});
  }

  // Megatron-LM's --use-rope-scaling has Llama 3.1's bounds and 8,192 tokens built in; --rotary-seq-len-interpolation-
  // factor is the linear form.
  void rotary() {
    const models::Rotary usual, &r = model_.rotary;
    const char* base = is_megatron_ ? "rotary-base" : "rotary-position-embeddings-theta";
    if (r.theta != usual.theta) flags_.push_back({base, {fmt::format("{:.0f}", r.theta)}});
    if (r.share != usual.share) flags_.push_back({"rotary-percent", {fmt::format("{:g}", r.share)}});
    models::Rotary llama = r;
    llama.original_sequence = 8192;
    llama.slow_turns = usual.slow_turns, llama.fast_turns = usual.fast_turns;
    if (r.scaling == models::RotaryScaling::kLlama3 && is_megatron_ && r == llama) {
      flags_.push_back({"use-rope-scaling", {}});
      flags_.push_back({"rope-scaling-factor", {fmt::format("{:g}", r.factor)}});
    } else if (r.scaling == models::RotaryScaling::kLinear && is_megatron_) {
      flags_.push_back({"rotary-seq-len-interpolation-factor", {fmt::format("{:.0f}", r.factor)}});
    } else if (r.scaling != models::RotaryScaling::kNone) {
      losses_.push_back({"rotary", "scaled frequencies; written without, which costs the same"});
    }
  }

  void activation() {
    if (model_.activation == Activation::kClampedSwiglu) {
      losses_.push_back({"activation", "clamped_swiglu; written as swiglu, which costs the same"});
      flags_.push_back({"swiglu", {}});
    }
    if (model_.activation == Activation::kSwiglu) flags_.push_back({"swiglu", {}});
    if (model_.activation == Activation::kSquaredRelu) flags_.push_back({"squared-relu", {}});
    if (model_.activation == Activation::kRelu) losses_.push_back({"activation", "relu; written as gelu"});
    if (model_.activation == Activation::kGeglu) {
      losses_.push_back({"activation", "geglu; written as swiglu, which costs the same"});
      flags_.push_back({"swiglu", {}});
    }
  }

  void numbers() {
    if (model_.head_norms && is_megatron_) flags_.push_back({"qk-layernorm", {}});
    if (model_.head_norms && !is_megatron_) losses_.push_back({"head_norms", "none"});
    if (model_.norm_epsilon != models::Model().norm_epsilon) {
      flags_.push_back(
          {is_megatron_ ? "norm-epsilon" : "layernorm-epsilon", {fmt::format("{:g}", model_.norm_epsilon)}});
    }
    if (model_.attention_sinks) losses_.push_back({"attention_sinks", "none"});
    for (const std::string& name : models::not_run(model_)) {
      losses_.push_back({"extras", fmt::format("without {}", name)});
    }
    if (model_.branch_norms) losses_.push_back({"branch_norms", "none; two norms a layer"});
    if (model_.attention_soft_cap > 0 || model_.logit_soft_cap > 0) losses_.push_back({"soft caps", "none"});
    if (model_.embedding_scale != 1) losses_.push_back({"embedding_scale", "1"});
    if (model_.logit_scale != 1) losses_.push_back({"logit_scale", "1"});
    if (model_.plain_head_norms) losses_.push_back({"plain_head_norms", "none"});
    if (model_.temperature) losses_.push_back({"temperature", "queries are as long everywhere"});
    if (model_.experts && model_.experts->scales_input) {
      losses_.push_back({"experts.scales_input", "gates on what experts give"});
    }
    if (model_.experts && !model_.experts->mixture_layers.empty()) {
      losses_.push_back({"experts.mixture_layers", "every layer a mixture"});
    }
    if (model_.window) losses_.push_back({"window", "every layer sees all keys"});
    if (model_.attention_scale != 0) losses_.push_back({"attention_scale", "1 / sqrt(head_dim)"});
  }

  void biases() {
    if (model_.linear_bias) {
      if (!model_.qkv_bias) losses_.push_back({"qkv_bias", "query, key and value have biases as the other layers do"});
      return;
    }
    flags_.push_back({"disable-bias-linear", {}});
    if (!model_.qkv_bias) return;
    if (!is_megatron_) return losses_.push_back({"qkv_bias", "query, key and value have no biases"});
    flags_.push_back({"add-qkv-bias", {}});
  }

  // Megatron-LM, training/arguments.py: multi-latent attention. Its heads' widths are without and with positions.
  void latents(const models::Latent& latent) {
    if (!is_megatron_) return losses_.push_back({"latent", "every head has queries, keys and values of its own"});
    flags_.push_back({"multi-latent-attention", {}});
    flags_.push_back({"qk-layernorm", {}});  // of the latents
    if (latent.query_rank > 0) add("q-lora-rank", latent.query_rank);
    add("kv-lora-rank", latent.key_rank);
    add("qk-head-dim", latent.plain_dim);
    add("qk-pos-emb-head-dim", latent.rotary_dim);
    add("v-head-dim", latent.value_dim);
  }

  void multi_token(const models::MultiToken& mtp) {
    if (!is_megatron_) return losses_.push_back({"mtp", "no module of multi-token prediction"});
    add("mtp-num-layers", mtp.depth);
    flags_.push_back({"mtp-loss-scaling-factor", {fmt::format("{:g}", mtp.loss_scale)}});
  }

  // The same, mixture of experts: options that DeepSeek's and GLM's have in addition to Mixtral's.
  void routing(const models::Experts& e) {
    if (e.scores == models::Scores::kSigmoid) flags_.push_back({"moe-router-score-function", {"sigmoid"}});
    if (e.correction_bias) flags_.push_back({"moe-router-enable-expert-bias", {}});
    if (e.groups > 1) {
      add("moe-router-num-groups", e.groups);
      add("moe-router-group-topk", e.top_groups);
    }
    if (e.scale != 1) flags_.push_back({"moe-router-topk-scaling-factor", {fmt::format("{:g}", e.scale)}});
    // transformer_config.py asks for it with one expert a token: softmax of one score would be 1.
    const bool one = e.top_k == 1 && e.scores == models::Scores::kSoftmax;
    if (!e.normalised || one) flags_.push_back({"moe-router-pre-softmax", {}});
    if (e.shared_hidden > 0) add("moe-shared-expert-intermediate-size", e.shared_hidden);
    if (e.dense_hidden > 0) add("moe-ffn-hidden-size", model_.ffn_hidden);
  }

  void experts(const models::Experts& experts) {
    add("num-experts", experts.count);
    add(is_megatron_ ? "moe-router-topk" : "topk", experts.top_k);
    if (is_megatron_) {
      const std::int64_t dense = experts.dense_layers;
      flags_.push_back({"moe-layer-freq",
                        {dense == 0 ? std::to_string(experts.every)
                                    : fmt::format("([0]*{}+[1]*{})", dense, model_.layers - dense)}});
      flags_.push_back({"moe-token-dispatcher-type", {"alltoall"}});
      routing(experts);
      if (experts.dropless) {
        flags_.push_back({"moe-grouped-gemm", {}});
        // TEGroupedMLP (core/transformer/moe/experts.py) fuses no bias with dropout.
        if (model_.linear_bias) flags_.push_back({"no-bias-dropout-fusion", {}});
      } else {
        flags_.push_back({"moe-expert-capacity-factor", {fmt::format("{:g}", experts.capacity_factor)}});
      }
      return;
    }
    if (experts.dropless) losses_.push_back({"experts.dropless", "experts accept a capacity, and drop what is beyond"});
    if (to_tell(experts)) losses_.push_back({"experts", "softmax over all experts, no shared ones, no dense layers"});
    flags_.push_back({"moe-train-capacity-factor", {fmt::format("{:g}", experts.capacity_factor)}});
    add("expert-interval", experts.every);
  }

  /// Whether the experts have what Megatron-DeepSpeed knows no option for.
  static bool to_tell(const models::Experts& e) {
    return e.scores != models::Scores::kSoftmax || e.correction_bias || e.groups > 1 || e.scale != 1 ||
           e.shared_hidden > 0 || e.dense_layers > 0;
  }

  const Model& model_;
  bool is_megatron_;
  std::vector<Loss>& losses_;
  std::vector<Argument> flags_;
};

std::string number(double value) { return fmt::format("{:g}", value); }

}  // namespace

std::vector<Argument> model_arguments(const Model& model, Trainer trainer, std::vector<Loss>& losses) {
  return ModelFlags(model, trainer, losses).write();
}

std::vector<Argument> training_arguments(const program::Training& training, std::vector<Loss>& losses) {
  const program::Optimizer& o = training.optimizer;
  std::vector<Argument> flags{{"train-iters", {std::to_string(steps_of(training, losses))}},
                              {"lr", {number(o.learning_rate)}},
                              {"min-lr", {number(o.min_learning_rate)}},
                              {"lr-decay-style", {"cosine"}},
                              {"lr-warmup-iters", {std::to_string(o.warmup_steps)}}};
  if (o.decay_steps > 0) flags.push_back({"lr-decay-iters", {std::to_string(o.decay_steps)}});
  const std::vector<Argument> rest{{"weight-decay", {number(o.weight_decay)}},
                                   {"adam-beta1", {number(o.beta1)}},
                                   {"adam-beta2", {number(o.beta2)}},
                                   {"adam-eps", {number(o.epsilon)}},
                                   {"clip-grad", {number(o.clip_norm)}},
                                   {"hidden-dropout", {number(training.dropout)}},
                                   {"attention-dropout", {number(training.dropout)}},
                                   {"seed", {std::to_string(training.seed)}}};
  flags.insert(flags.end(), rest.begin(), rest.end());
  return flags;
}

}  // namespace trivium::planner::launch
