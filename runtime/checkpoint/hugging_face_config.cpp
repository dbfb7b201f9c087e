// The config.json that is written next to weights in Hugging Face's format.
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/checkpoint/families.h"
#include "runtime/checkpoint/hugging_face_table.h"
#include "runtime/checkpoint/whole.h"

namespace trivium::runtime::checkpoint {
namespace {

/// As transformers names it: without gates, and with.
std::string activation_name(models::Activation activation) {
  switch (activation) {
    case models::Activation::kRelu:
      return "relu";
    case models::Activation::kSwiglu:
    case models::Activation::kClampedSwiglu:
      return "silu";
    case models::Activation::kGeglu:
      return "gelu_pytorch_tanh";
    case models::Activation::kGeluErf:
      return "gelu";
    case models::Activation::kSquaredRelu:
      return "relu2";
    case models::Activation::kGelu:
      break;
  }
  return "gelu_new";
}

/// Of scaled frequencies; nothing where they are not.
nlohmann::json rope_scaling(const models::Rotary& r) {
  switch (r.scaling) {
    case models::RotaryScaling::kNone:
      break;
    case models::RotaryScaling::kLinear:
      return {{"rope_type", "linear"}, {"factor", r.factor}};
    case models::RotaryScaling::kLlama3:
      return {{"rope_type", "llama3"},
              {"factor", r.factor},
              {"low_freq_factor", r.slow_turns},
              {"high_freq_factor", r.fast_turns},
              {"original_max_position_embeddings", r.original_sequence}};
    case models::RotaryScaling::kYarn:
      return {{"rope_type", "yarn"},
              {"factor", r.factor},
              {"beta_slow", r.slow_turns},
              {"beta_fast", r.fast_turns},
              {"truncate", r.whole_pairs},
              {"attention_factor", r.amplitude},
              {"original_max_position_embeddings", r.original_sequence}};
  }
  return nullptr;
}

struct LlamaKind {
  const char *type, *architecture;
};

/// The window; where not all layers have it, also by layer. All of Mistral's do.
void add_windows(const models::Model& m, nlohmann::json& config) {
  if (!m.window || is_llama4(m)) return;
  config["sliding_window"] = m.window->keys;
  if (!is_qwen(m) && !is_gpt_oss(m) && !is_gemma(m)) return;
  if (is_llama(m)) config["use_sliding_window"] = true;
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    config["layer_types"].push_back(m.layer_kind(layer).window > 0 ? "sliding_attention" : "full_attention");
  }
}

nlohmann::json rope_parameters(const models::Rotary& rotary) {
  nlohmann::json parameters = rope_scaling(rotary);
  if (parameters.is_null()) parameters["rope_type"] = "default";
  parameters["rope_theta"] = rotary.theta;
  return parameters;
}

void add_gemma(const models::Model& m, nlohmann::json& config) {
  config.erase("mlp_bias");
  config.erase("hidden_act");
  config["hidden_activation"] = activation_name(m.activation);
  const double scalar = m.attention_scale == 0 ? static_cast<double>(m.head_dim) : std::pow(m.attention_scale, -2);
  config["query_pre_attn_scalar"] = std::llround(scalar);
  const auto cap = [](double value) { return value > 0 ? nlohmann::json(value) : nlohmann::json(); };
  config["attn_logit_softcapping"] = cap(m.attention_soft_cap);
  config["final_logit_softcapping"] = cap(m.logit_soft_cap);
  if (!m.head_norms) return;
  config.erase("rope_theta");
  config["rope_parameters"] = {{"full_attention", rope_parameters(m.rotary)},
                               {"sliding_attention", rope_parameters(m.window->rotary.value_or(m.rotary))}};
}

void add_llama4(const models::Model& m, nlohmann::json& config) {
  const models::Experts& e = *m.experts;
  config.erase("mlp_bias");
  config["attention_chunk_size"] = m.window->keys;
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    const bool turns = m.turns(m.layer_kind(layer));
    config["no_rope_layers"].push_back(turns ? 1 : 0);
    config["layer_types"].push_back(turns ? "chunked_attention" : "full_attention");
  }
  config["use_qk_norm"] = m.plain_head_norms;
  config["attn_temperature_tuning"] = m.temperature.has_value();
  if (m.temperature) {
    config["attn_scale"] = m.temperature->slope;
    config["floor_scale"] = m.temperature->run;
  }
  config["intermediate_size"] = m.ffn_hidden;
  config["intermediate_size_mlp"] = m.dense_hidden();
  config["num_local_experts"] = e.count;
  config["num_experts_per_tok"] = e.top_k;
  config["interleave_moe_layer_step"] = e.every;
  config["output_router_logits"] = e.balance_loss > 0;
  if (e.balance_loss > 0) config["router_aux_loss_coef"] = e.balance_loss;
}

/// The kind of llama that has the model's parameters, or Nemotron, or a mixture.
LlamaKind llama_kind(const models::Model& m) {
  const std::string mixture = mixture_type(m);
  if (mixture == "mixtral") return {"mixtral", "MixtralForCausalLM"};
  if (mixture == "qwen3_moe") return {"qwen3_moe", "Qwen3MoeForCausalLM"};
  if (mixture == "glm4_moe") return {"glm4_moe", "Glm4MoeForCausalLM"};
  if (mixture == "deepseek_v2") return {"deepseek_v2", "DeepseekV2ForCausalLM"};
  if (mixture == "deepseek_v3") return {"deepseek_v3", "DeepseekV3ForCausalLM"};
  if (is_llama4(m)) return {"llama4_text", "Llama4ForCausalLM"};
  if (is_gemma(m) && m.head_norms) return {"gemma3_text", "Gemma3ForCausalLM"};
  if (is_gemma(m)) return {"gemma2", "Gemma2ForCausalLM"};
  if (is_nemotron(m)) return {"nemotron", "NemotronForCausalLM"};
  if (is_gpt_oss(m)) return {"gpt_oss", "GptOssForCausalLM"};
  if (m.head_norms) return {"qwen3", "Qwen3ForCausalLM"};
  if (is_qwen(m)) return {"qwen2", "Qwen2ForCausalLM"};
  if (m.window) return {"mistral", "MistralForCausalLM"};
  return {"llama", "LlamaForCausalLM"};
}

}  // namespace

nlohmann::json hugging_face_config(const models::Model& m) {
  if (is_gpt2(m)) {
    return {{"model_type", "gpt2"},
            {"architectures", {"GPT2LMHeadModel"}},
            {"vocab_size", m.vocab},
            {"n_positions", m.max_sequence},
            {"n_embd", m.hidden},
            {"n_layer", m.layers},
            {"n_head", m.heads},
            {"n_inner", m.ffn_hidden},
            {"activation_function", activation_name(m.activation)},
            {"layer_norm_epsilon", m.norm_epsilon},
            {"scale_attn_weights", m.attention_scale == 0},
            {"tie_word_embeddings", m.tied_embeddings}};
  }
  if (is_grok(m)) return grok_config(m);
  const auto kind = llama_kind(m);
  nlohmann::json config = {{"model_type", kind.type},
                           {"architectures", {kind.architecture}},
                           {"vocab_size", m.vocab},
                           {"max_position_embeddings", m.max_sequence},
                           {"hidden_size", m.hidden},
                           {"num_hidden_layers", m.layers},
                           {"num_attention_heads", m.heads},
                           {"num_key_value_heads", m.kv_heads},
                           {"head_dim", m.head_dim},
                           {"intermediate_size", m.ffn_hidden},
                           {"hidden_act", activation_name(m.activation)},
                           {"rms_norm_eps", m.norm_epsilon},
                           {"rope_theta", m.rotary.theta},
                           {"attention_bias", m.qkv_bias},
                           {"mlp_bias", m.linear_bias},
                           {"tie_word_embeddings", m.tied_embeddings}};
  add_windows(m, config);
  if (is_gpt_oss(m)) {
    config.erase("mlp_bias");
    config["num_local_experts"] = m.experts->count;
    config["num_experts_per_tok"] = m.experts->top_k;
    config["swiglu_alpha"] = models::kClampedSlope;
    config["swiglu_limit"] = models::kClampedLimit;
    // The family's own default is YaRN with a factor of 32.
    config["rope_parameters"] = rope_parameters(m.rotary);
  }
  if (is_nemotron(m)) {
    config.erase("rms_norm_eps");
    config["norm_eps"] = m.norm_epsilon;
    config["partial_rotary_factor"] = m.rotary.share;
  }
  if (is_gemma(m)) add_gemma(m, config);
  if (is_llama4(m)) add_llama4(m, config);
  const bool scaled = config.contains("rope_theta");  // else told above
  if (nlohmann::json scaling = rope_scaling(m.rotary); scaled && !scaling.is_null())
    config["rope_scaling"] = std::move(scaling);
  if (!mixture_type(m).empty()) describe_mixture(config, m);
  return config;
}

}  // namespace trivium::runtime::checkpoint
