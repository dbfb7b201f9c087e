// A model for torchtitan v0.2.2: arguments of one of its classes, and the module that registers them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "planner/launch/export_parts.h"

namespace trivium::planner::launch {
namespace {

using models::Model;

/// Qwen 3's class takes any width of heads and MLP, norms of heads, tied embeddings, and experts in every layer; Llama
/// 3's has scaled frequencies; Llama 4's both, and experts in some of the layers; DeepSeek V3's has latents, and
/// experts after the first layers.
enum class ModelClass { kLlama3, kLlama4, kQwen3, kDeepseek };

/// int(2/3 of 4 dim), which both classes of Llama multiply by a factor and round up to a multiple.
std::int64_t third_of(const Model& model) {
  return static_cast<std::int64_t>(2.0 * 4 * static_cast<double>(model.hidden) / 3);
}

/// Widths in Llama 4's class are made of one number: dense ones are it, those of experts its share, both rounded up.
struct LlamaWidths {
  std::int64_t dense = 0, share = 1, multiple = 1;
};

LlamaWidths widths_of(const Model& model) {
  const models::Experts& e = *model.experts;
  LlamaWidths widths;
  widths.share = e.top_k + e.shared_hidden / model.ffn_hidden;
  widths.dense = e.every == 1 ? widths.share * model.ffn_hidden : model.dense_hidden();
  widths.multiple = std::gcd(widths.dense, model.ffn_hidden);
  return widths;
}

bool has_whole_heads(const Model& model) {
  return !model.head_norms && !model.tied_embeddings && model.head_dim * model.heads == model.hidden;
}

bool fits_llama4(const Model& model) {
  if (!model.experts || model.latent || !has_whole_heads(model) || model.experts->dense_layers > 0) return false;
  const bool scaled = model.rotary.scaling == models::RotaryScaling::kLlama3;
  if (!scaled && (model.experts->every == 1 || model.rotary.scaling != models::RotaryScaling::kNone)) return false;
  const LlamaWidths widths = widths_of(model);
  const std::int64_t width = widths.dense / widths.share;
  return model.experts->shared_hidden % model.ffn_hidden == 0 && width <= model.ffn_hidden &&
         model.ffn_hidden - width < widths.multiple;
}

bool fits_deepseek(const Model& model) {
  return model.latent && model.experts && model.experts->every == 1 && !model.head_norms && !model.tied_embeddings &&
         model.experts->shared_hidden % model.ffn_hidden == 0 && model.rotary.scaling != models::RotaryScaling::kLlama3;
}

ModelClass class_of(const Model& model) {
  if (fits_deepseek(model)) return ModelClass::kDeepseek;
  if (fits_llama4(model)) return ModelClass::kLlama4;
  return model.rotary.scaling == models::RotaryScaling::kLlama3 ? ModelClass::kLlama3 : ModelClass::kQwen3;
}

const char* python_of(bool value) { return value ? "True" : "False"; }

std::string imports(ModelClass of) {
  constexpr const char* kScaled =
      "from torchtitan.models.{0} import TransformerModelArgs, get_train_spec\n"
      "from torchtitan.models.{0}.model.args import RoPEScalingArgs\n";
  std::string text = "from dataclasses import replace\n\n";
  if (of == ModelClass::kLlama3) {
    text += fmt::format(kScaled, "llama3");
  } else if (of == ModelClass::kLlama4) {
    text += fmt::format(kScaled, "llama4") + "from torchtitan.models.moe import MoEArgs\n";
  } else if (of == ModelClass::kDeepseek) {
    text +=
        "from torchtitan.models.deepseek_v3 import DeepSeekV3ModelArgs, get_train_spec\n"
        "from torchtitan.models.moe import MoEArgs\n";
  } else {
    text +=
        "from torchtitan.models.moe import MoEArgs\n"
        "from torchtitan.models.qwen3 import Qwen3ModelArgs, get_train_spec\n";
  }
  return text +
         "from torchtitan.distributed.pipeline_parallel import pipeline_llm\n"
         "from torchtitan.protocols.train_spec import register_train_spec\n\n";
}

std::string moe_arguments(const Model& m) {
  const models::Experts& e = *m.experts;
  const std::string groups =
      e.groups > 1 ? fmt::format(", num_expert_groups={}, num_limited_groups={}", e.groups, e.top_groups) : "";
  return fmt::format(
      "    moe_args=MoEArgs(num_experts={}, num_shared_experts={}, top_k={}, score_func=\"{}\", route_norm={},\n"
      "                     route_scale={:g}, score_before_experts={}{})",
      e.count, e.shared_hidden / m.ffn_hidden, e.top_k, e.scores == models::Scores::kSigmoid ? "sigmoid" : "softmax",
      python_of(e.normalised), e.scale, python_of(e.scales_input), groups);
}

std::string rope_scaling(const Model& m) {
  const models::Rotary& r = m.rotary;
  return fmt::format(
      "    rope_scaling_args=RoPEScalingArgs(scaling_factor={:g}, low_freq_factor={:g}, high_freq_factor={:g},\n"
      "                                      original_max_position_embeddings={})",
      r.factor, r.slow_turns, r.fast_turns, r.original_sequence);
}

/// What both classes of Llama have. A width is a multiple of its own that two thirds of itself round up to.
std::string llama_arguments(const Model& m, std::int64_t width, std::int64_t multiple) {
  return fmt::format(
      "args = TransformerModelArgs(\n"
      "    dim={}, n_layers={}, n_heads={}, n_kv_heads={}, vocab_size={}, multiple_of={}, "
      "ffn_dim_multiplier={:.9g},\n"
      "    norm_eps={:g}, rope_theta={:g}, max_seq_len={},\n",
      m.hidden, m.layers, m.heads, m.kv_heads, m.vocab, multiple,
      static_cast<double>(width) / (4.0 * static_cast<double>(m.hidden)), m.norm_epsilon, m.rotary.theta,
      m.max_sequence);
}

std::string llama3_arguments(const Model& m) {
  return llama_arguments(m, m.ffn_hidden, m.ffn_hidden) + rope_scaling(m) + ")\n\n";
}

// Attention there is over blocks with FlexAttention alone, whose mask v0.2.2 passes as a table that the kernel does not
// take (models/llama4/model/model.py, Attention.forward, block_mask=attention_masks): every layer sees all keys.
std::string llama4_arguments(const Model& m) {
  const LlamaWidths widths = widths_of(m);
  // Rounded up, so that the truncated number is no less than the width that is meant.
  const double factor = (static_cast<double>(widths.dense) + 0.5) / static_cast<double>(third_of(m));
  std::string text = fmt::format(
      "args = TransformerModelArgs(\n"
      "    dim={}, n_layers={}, n_heads={}, n_kv_heads={}, vocab_size={}, multiple_of={}, "
      "ffn_dim_multiplier={:.9g},\n"
      "    norm_eps={:g}, rope_theta={:g}, max_seq_len={}, interleave_moe_layer_step={},\n",
      m.hidden, m.layers, m.heads, m.kv_heads, m.vocab, widths.multiple, factor, m.norm_epsilon, m.rotary.theta,
      m.max_sequence, m.experts->every);
  if (m.rotary.scaling == models::RotaryScaling::kLlama3) text += rope_scaling(m) + ",\n";
  return text + moe_arguments(m) + ")\n\n";
}

std::string qwen3_arguments(const Model& m) {
  std::string text = fmt::format(
      "args = Qwen3ModelArgs(\n"
      "    dim={}, n_layers={}, n_heads={}, n_kv_heads={}, head_dim={}, hidden_dim={}, vocab_size={},\n"
      "    norm_eps={:g}, rope_theta={:g}, qk_norm={}, enable_weight_tying={}, max_seq_len={}",
      m.hidden, m.layers, m.heads, m.kv_heads, m.head_dim, m.dense_hidden(), m.vocab, m.norm_epsilon, m.rotary.theta,
      python_of(m.head_norms), python_of(m.tied_embeddings), m.max_sequence);
  if (m.experts) text += fmt::format(",\n    moe_enabled=True, moe_inter_dim={},\n", m.ffn_hidden) + moe_arguments(m);
  return text + ")\n\n";
}

// models/deepseek_v3/model/model.py: beyond original_seq_len frequencies are YaRN's and scores are scaled by the square
// of 0.1 mscale ln(rope_factor) + 1.
std::string deepseek_arguments(const Model& m) {
  const models::Latent& l = *m.latent;
  const models::Experts& e = *m.experts;
  const models::Rotary& r = m.rotary;
  std::string text = fmt::format(
      "args = DeepSeekV3ModelArgs(\n"
      "    dim={}, n_layers={}, n_dense_layers={}, n_heads={}, inter_dim={}, moe_inter_dim={}, vocab_size={},\n"
      "    q_lora_rank={}, kv_lora_rank={}, qk_nope_head_dim={}, qk_rope_head_dim={}, v_head_dim={},\n"
      "    norm_eps={:g}, rope_theta={:g}, max_seq_len={},\n",
      m.hidden, m.layers, e.dense_layers, m.heads, m.dense_hidden(), m.ffn_hidden, m.vocab, l.query_rank, l.key_rank,
      l.plain_dim, l.rotary_dim, l.value_dim, m.norm_epsilon, r.theta, m.max_sequence);
  if (r.scaling == models::RotaryScaling::kYarn) {
    const double scale = m.attention_scale > 0 ? m.attention_scale * std::sqrt(static_cast<double>(m.head_dim)) : 1;
    const double per_factor = 0.1 * std::log(r.factor);
    text += fmt::format("    original_seq_len={}, rope_factor={:g}, beta_fast={:g}, beta_slow={:g}, mscale={:.6g},\n",
                        r.original_sequence, r.factor, r.fast_turns, r.slow_turns,
                        per_factor > 0 ? (std::sqrt(scale) - 1) / per_factor : 0);
  } else {
    text += fmt::format("    original_seq_len={},\n", m.max_sequence);
  }
  return text + moe_arguments(m) + ")\n\n";
}

void lose_layers(const Model& m, ModelClass of, std::vector<Loss>& losses) {
  const bool is_llama = m.norm == models::Norm::kRmsNorm && m.activation == models::Activation::kSwiglu &&
                        m.positions == models::Positions::kRotary && !m.linear_bias && !m.qkv_bias &&
                        !m.parallel_block && !m.attention_sinks && !m.branch_norms && m.attention_soft_cap == 0 &&
                        m.logit_soft_cap == 0 && m.embedding_scale == 1 && m.logit_scale == 1 && !m.plain_head_norms &&
                        !m.temperature && !m.embedding_norm;
  if (!is_llama) {
    losses.push_back(
        {"model", fmt::format("{}: only the shape; layers are RMSNorm, SwiGLU and rotary, without biases", m.name)});
  }
  if (of == ModelClass::kLlama3 && (!has_whole_heads(m) || m.experts)) {
    losses.push_back({"model", fmt::format("{}: with scaled frequencies, heads are hidden / heads wide, embeddings "
                                           "untied, MLPs dense and heads without norms",
                                           m.name)});
  }
  if (of == ModelClass::kQwen3 && m.rotary.scaling != models::RotaryScaling::kNone) {
    losses.push_back({"rotary", "scaled frequencies; written without, which costs the same"});
  }
  for (const std::string& name : models::not_run(m)) losses.push_back({"extras", fmt::format("without {}", name)});
  if (m.window) losses.push_back({"window", "every layer sees all keys"});
  if (m.mtp) losses.push_back({"mtp", "no module of multi-token prediction"});
  const bool latent = of == ModelClass::kDeepseek;
  if (m.latent && !latent) losses.push_back({"latent", "every head has queries, keys and values of its own"});
  const bool has_dense =
      m.experts && (m.experts->every != 1 || m.experts->dense_layers > 0 || !m.experts->mixture_layers.empty());
  const bool some = has_dense && of != ModelClass::kLlama4 && !latent;
  if (some || (m.experts && !m.experts->dropless)) {
    losses.push_back({"experts", some ? "every layer becomes a mixture that drops nothing" : "they drop nothing"});
  }
}

}  // namespace

std::string torchtitan_flavor(const Model& model, std::vector<Loss>& losses) {
  const ModelClass of = class_of(model);
  lose_layers(model, of, losses);
  const std::string arguments = of == ModelClass::kLlama3     ? llama3_arguments(model)
                                : of == ModelClass::kLlama4   ? llama4_arguments(model)
                                : of == ModelClass::kDeepseek ? deepseek_arguments(model)
                                                              : qwen3_arguments(model);
  return imports(of) + arguments +
         "register_train_spec(\n"
         "    \"trivium\", replace(get_train_spec(), model_args={\"plan\": args}, pipelining_fn=pipeline_llm))\n";
}

}  // namespace trivium::planner::launch
