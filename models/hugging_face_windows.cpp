// Families whose layers look back a window in turn: gpt-oss, Gemma 2 and 3.
#include <fmt/format.h>

#include <cmath>

#include "models/hugging_face_parts.h"
#include "models/validate.h"

namespace trivium::models {

/// gpt-oss's scaling where the file names none.
static void read_gpt_oss_rotary(const Config& config, Model& model) {
  model.rotary.theta = 150000;
  if (!given(config, "rope_scaling") && !given(config, "rope_parameters")) {
    model.rotary.scaling = RotaryScaling::kYarn;
    model.rotary.factor = 32;
    model.rotary.original_sequence = 4096;
    model.rotary.slow_turns = 1, model.rotary.fast_turns = 32;
    model.rotary.whole_pairs = false;
    model.rotary.amplitude = yarn_amplitude(model.rotary.factor, 1);
  }
  read_rotary(config, model, "rope_theta", "partial_rotary_factor", 1);
}

/// gpt-oss: sinks, windows in every other layer, biases everywhere, mixtures of clamped SwiGLU in every layer.
Model read_gpt_oss(const Config& config) {
  Model model;
  read_common(config, model);
  model.kv_heads = count_or(config, "num_key_value_heads", kMostHeads, 8);
  model.head_dim = count_or(config, "head_dim", kMostHeads, 64);
  model.ffn_hidden = count_or(config, "intermediate_size", kMostWidth, 2880);
  model.max_sequence = count_or(config, "max_position_embeddings", kMostPositions, 131072);
  model.norm = Norm::kRmsNorm;
  model.norm_epsilon = number_or(config, "rms_norm_eps", 1e-5);
  model.positions = Positions::kRotary;
  read_gpt_oss_rotary(config, model);
  activation_of(config, "hidden_act", true, "silu");
  const auto only = [&](std::string_view key, double value) {
    if (number_or(config, key, value) != value) config.at(key).fail(fmt::format("is not supported but {}", value));
  };
  only("swiglu_alpha", kClampedSlope);
  only("swiglu_limit", kClampedLimit);
  model.activation = Activation::kClampedSwiglu;
  model.tied_embeddings = flag_or(config, "tie_word_embeddings", false);
  if (!flag_or(config, "attention_bias", true)) {
    config.at("attention_bias").fail("biases in experts but not in attention are not supported");
  }
  model.attention_sinks = true;
  model.window = Window{.keys = count_or(config, "sliding_window", kMostPositions, 128), .full_every = 2};
  if (const auto types = given(config, "layer_types")) read_layer_types(*types, model, model.window->keys);
  Experts experts;
  experts.count = count_or(config, "num_local_experts", kMostExperts, 128);
  experts.top_k = count_or(config, given(config, "num_experts_per_tok") ? "num_experts_per_tok" : "experts_per_token",
                           kMostExperts, 4);
  count_or(config, "experts_per_token", kMostExperts, 4);  // the same again
  experts.dropless = true;
  experts.balance_loss = 0;
  if (flag_or(config, "output_router_logits", false)) {
    experts.balance_loss = number_or(config, "router_aux_loss_coef", 0.9);
  }
  model.experts = experts;
  return model;
}

/// Gemma 3's layers with windows have frequencies of their own; only the others' are scaled.
static void read_gemma3_rotary(const Config& config, Model& model, Rotary& local) {
  model.rotary.theta = 1e6;
  Model windowed = model;
  windowed.rotary.theta = 10000;
  const auto told = given(config, "rope_parameters");
  if (told && (told->find("full_attention") || told->find("sliding_attention"))) {  // as transformers 5 writes them
    const Config by_type(*told);
    read_scaling(by_type, "full_attention", model);
    read_scaling(by_type, "sliding_attention", windowed);
  } else {
    read_rotary(config, model, "rope_theta", "partial_rotary_factor", 1);
    windowed.rotary.theta = factor_or(config, "rope_local_base_freq", 10000);
  }
  local = windowed.rotary;
}

static Window read_gemma_window(const Config& config, bool third) {
  Window window{.keys = count_or(config, "sliding_window", kMostPositions, 4096), .full_every = 2};
  if (third) {
    const char* pattern =
        given(config, "sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
    window.full_every = count_or(config, pattern, kMostLayers, 6);
  }
  return window;
}

Model read_gemma(const Config& config, bool third) {
  Model model;
  read_common(config, model);
  model.kv_heads = count_or(config, "num_key_value_heads", kMostHeads, 4);
  model.head_dim = count_or(config, "head_dim", kMostHeads, 256);
  model.ffn_hidden = count_or(config, "intermediate_size", kMostWidth, 9216);
  model.max_sequence = count_or(config, "max_position_embeddings", kMostPositions, third ? 131072 : 8192);
  model.norm = Norm::kRmsNorm;
  model.norm_epsilon = number_or(config, "rms_norm_eps", 1e-6);
  model.head_norms = third;
  model.branch_norms = true;
  model.positions = Positions::kRotary;
  model.activation = activation_of(config, given(config, "hidden_activation") ? "hidden_activation" : "hidden_act",
                                   true, "gelu_pytorch_tanh");
  given(config, "hidden_act");  // Gemma 2's files have both; the library reads the other
  const double scalar = factor_or(config, "query_pre_attn_scalar", 256);
  if (scalar != static_cast<double>(model.head_dim)) model.attention_scale = 1 / std::sqrt(scalar);
  model.embedding_scale = std::sqrt(static_cast<double>(model.hidden));
  model.attention_soft_cap =
      number_or(config, "attn_logit_softcapping", third || config.find("attn_logit_softcapping") ? 0 : 50);
  model.logit_soft_cap =
      number_or(config, "final_logit_softcapping", third || config.find("final_logit_softcapping") ? 0 : 30);
  if (third && model.attention_soft_cap > 0) {
    config.at("attn_logit_softcapping").fail("is not supported: transformers leaves it out in Gemma 3");
  }
  refuse_flag(config, "use_bidirectional_attention");
  refuse_flag(config, "attention_bias");
  model.qkv_bias = model.linear_bias = false;
  model.tied_embeddings = flag_or(config, "tie_word_embeddings", true);
  model.window = read_gemma_window(config, third);
  Rotary local;
  if (third) {
    read_gemma3_rotary(config, model, local);
  } else {
    read_rotary(config, model, "rope_theta", "partial_rotary_factor", 1);
    local = model.rotary;
  }
  if (const auto types = given(config, "layer_types")) read_layer_types(*types, model, model.window->keys);
  if (model.window && local != model.rotary) model.window->rotary = local;
  return model;
}

}  // namespace trivium::models
