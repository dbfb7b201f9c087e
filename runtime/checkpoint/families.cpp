#include "runtime/checkpoint/families.h"

#include <cmath>

namespace trivium::runtime::checkpoint {

bool is_plain(const models::Model& model) {
  return !model.branch_norms && !model.embedding_norm && model.attention_soft_cap == 0 && model.logit_soft_cap == 0 &&
         model.embedding_scale == 1 && !(model.window && model.window->rotary) && !is_later(model);
}

bool is_later(const models::Model& model) {
  return !models::not_run(model).empty() || model.embedding_norm || model.logit_scale != 1 || model.plain_head_norms ||
         model.temperature ||
         (model.window && (model.window->chunked || model.window->plain_full || !model.window->full_layers.empty())) ||
         (model.experts && (model.experts->scales_input || !model.experts->mixture_layers.empty()));
}

bool is_gpt2(const models::Model& model) {
  return model.norm == models::Norm::kLayerNorm && model.positions == models::Positions::kLearned && !model.gated() &&
         model.linear_bias && model.qkv_bias && !model.head_norms && !model.parallel_block && !model.experts &&
         model.kv_heads == model.heads && (model.attention_scale == 0 || model.attention_scale == 1) && !model.window &&
         !model.attention_sinks && is_plain(model);
}

bool is_qwen(const models::Model& model) { return model.head_norms || (model.qkv_bias && !model.linear_bias); }

// Whether a family has the model's windows: Qwen's have those of any layers, Mistral's those of all.
static bool names_windows(const models::Model& model) {
  return is_qwen(model) || (!model.linear_bias && models::layer_kinds(model).size() == 1);
}

bool is_llama(const models::Model& model) {
  return model.norm == models::Norm::kRmsNorm && model.positions == models::Positions::kRotary && model.gated() &&
         model.activation != models::Activation::kClampedSwiglu && !model.attention_sinks && !model.parallel_block &&
         !model.experts && !model.latent && model.rotary.share == 1 && model.attention_scale == 0 && is_plain(model) &&
         !(model.head_norms && model.linear_bias) && (!model.window || names_windows(model));
}

bool is_nemotron(const models::Model& model) {
  return model.norm == models::Norm::kLayerNorm && model.positions == models::Positions::kRotary &&
         model.activation == models::Activation::kSquaredRelu && !model.parallel_block && !model.experts &&
         !model.head_norms && model.qkv_bias == model.linear_bias && model.attention_scale == 0 && !model.window &&
         !model.attention_sinks && is_plain(model);
}

bool is_gpt_oss(const models::Model& model) {
  return model.norm == models::Norm::kRmsNorm && model.positions == models::Positions::kRotary &&
         model.activation == models::Activation::kClampedSwiglu && model.attention_sinks && model.window &&
         !model.latent && model.experts && model.experts->every == 1 && model.linear_bias && model.qkv_bias &&
         !model.head_norms && !model.parallel_block && model.rotary.share == 1 && model.attention_scale == 0 &&
         is_plain(model);
}

bool is_gemma(const models::Model& model) {
  const bool capped = model.attention_soft_cap > 0 || model.logit_soft_cap > 0;
  const bool local = model.window && model.window->rotary;
  return model.norm == models::Norm::kRmsNorm && model.positions == models::Positions::kRotary && model.branch_norms &&
         model.activation == models::Activation::kGeglu && !model.latent && model.window && !model.attention_sinks &&
         !model.experts && !model.qkv_bias && !model.linear_bias && !model.parallel_block && model.rotary.share == 1 &&
         model.embedding_scale == std::sqrt(static_cast<double>(model.hidden)) &&
         !(model.head_norms ? capped : local) && !is_later(model);
}

bool is_llama4(const models::Model& model) {
  if (!models::not_run(model).empty() || !model.experts || !model.window) return false;
  const models::Experts& e = *model.experts;
  const models::Window& w = *model.window;
  const bool full = w.full_every > 0 || w.first_layer > 0;
  const bool routes = e.scales_input && e.scores == models::Scores::kSigmoid && !e.correction_bias && !e.normalised &&
                      e.groups == 1 && e.scale == 1 && e.dense_layers == 0 && e.shared_hidden == model.ffn_hidden;
  return model.norm == models::Norm::kRmsNorm && model.positions == models::Positions::kRotary && routes &&
         model.activation == models::Activation::kSwiglu && w.chunked && w.plain_full == full && !w.rotary &&
         model.rotary.share == 1 && !(model.plain_head_norms && model.rotary.amplitude != 1) && !model.latent &&
         !model.head_norms && !model.branch_norms && !model.attention_sinks && !model.qkv_bias && !model.linear_bias &&
         !model.parallel_block && model.attention_scale == 0 && model.attention_soft_cap == 0 &&
         model.logit_soft_cap == 0 && model.logit_scale == 1 && model.embedding_scale == 1;
}

bool is_grok(const models::Model& model) {
  if (!models::not_run(model).empty() || !model.experts) return false;
  const models::Experts& e = *model.experts;
  const bool routes = e.scores == models::Scores::kSoftmax && !e.normalised && !e.correction_bias && !e.scales_input &&
                      e.groups == 1 && e.scale == 1 && e.shared_hidden == 0 && e.dense_layers == 0 && e.every == 1;
  return model.norm == models::Norm::kRmsNorm && model.positions == models::Positions::kRotary && routes &&
         model.activation == models::Activation::kGeglu && model.branch_norms && model.attention_soft_cap > 0 &&
         model.logit_soft_cap == 0 && model.head_dim * model.heads == model.hidden && model.rotary.share == 1 &&
         model.rotary.scaling == models::RotaryScaling::kNone && !model.window && !model.temperature && !model.latent &&
         !model.head_norms && !model.plain_head_norms && !model.attention_sinks && !model.qkv_bias &&
         !model.linear_bias && !model.parallel_block;
}

}  // namespace trivium::runtime::checkpoint
