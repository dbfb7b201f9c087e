// Llama 4's text model: attention in chunks with rotary positions, every so many layers full attention without, whose
// queries grow with their position; mixtures whose gates multiply what an expert reads. Formulas are those of
// transformers' modeling file, which the oracle's cases compare (tests/oracle).
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "models/hugging_face_parts.h"
#include "models/validate.h"

namespace trivium::models {

using base::JsonReader;

namespace {

/// Which layers turn heads: those named, or all but every so many; an empty list names none.
std::vector<bool> turning_layers(const Config& config, std::int64_t layers) {
  const std::int64_t every = count_or(config, "no_rope_layer_interval", kMostLayers, 4);
  std::vector<bool> turning;
  for (std::int64_t layer = 0; layer < layers; ++layer) turning.push_back((layer + 1) % every != 0);
  const auto named = given(config, "no_rope_layers");
  if (!named || named->json().empty()) return turning;
  turning.clear();
  for (const JsonReader& one : named->elements()) turning.push_back(one.integer(0, 1) == 1);
  if (std::ssize(turning) != layers) {
    named->fail(fmt::format("has {} entries for {} layers", turning.size(), layers));
  }
  return turning;
}

/// Layers whose attention is chunked are those whose heads turn.
void read_chunks(const Config& config, Model& model) {
  const std::vector<bool> turning = turning_layers(config, model.layers);
  constexpr std::int64_t kUsual = 8192;
  const auto size = config.find("attention_chunk_size");
  const std::int64_t keys = size ? size->integer(1, kMostPositions) : kUsual;
  const auto types = given(config, "layer_types");
  if (types && windowed_layers(*types, model.layers, "chunked_attention") != turning) {
    types->fail("is not supported but \"chunked_attention\" in the layers whose heads turn (no_rope_layers)");
  }
  const char* where = given(config, "no_rope_layers") ? "no_rope_layers" : "no_rope_layer_interval";
  const JsonReader reader = given(config, where).value_or(config);
  set_windows(reader, model, keys, turning);
  if (!model.window) reader.fail("leaves no layer whose heads turn, which is not supported");
  model.window->chunked = true;
  model.window->plain_full = model.window->full_every > 0 || model.window->first_layer > 0;
}

/// A flag that older files tell as a number.
bool tunes_temperature(const Config& config) {
  const auto member = given(config, "attn_temperature_tuning");
  if (!member) return true;
  return member->json().is_number() ? member->number() != 0 : member->boolean();
}

void read_temperature(const Config& config, Model& model) {
  const bool tunes = tunes_temperature(config);
  const Temperature temperature{.slope = number_or(config, "attn_scale", 0.1),
                                .run = count_or(config, "floor_scale", kMostPositions, 8192)};
  if (tunes && model.window->plain_full && temperature.slope > 0) model.temperature = temperature;
}

std::int64_t mixture_step(const Config& config, const Model& model) {
  const std::int64_t told = count_or(config, "interleave_moe_layer_step", kMostLayers, 1);
  const auto named = given(config, "moe_layers");
  if (!named) return told;
  std::vector<std::int64_t> layers, expected;
  for (const JsonReader& one : named->elements()) layers.push_back(one.integer(0, model.layers - 1));
  const std::int64_t step = layers.empty() ? 0 : layers.front() + 1;
  for (std::int64_t layer = step - 1; step > 0 && layer < model.layers; layer += step) expected.push_back(layer);
  if (layers.empty() || layers != expected) named->fail("is not supported but the last of every so many layers");
  return step;
}

Experts read_experts(const Config& config, const Model& model) {
  Experts e;
  e.count = count_or(config, "num_local_experts", kMostExperts, 16);
  e.top_k = count_or(config, "num_experts_per_tok", kMostExperts, 1);
  e.every = mixture_step(config, model);
  e.dropless = true;
  e.scores = Scores::kSigmoid;
  e.normalised = false;
  e.scales_input = true;
  e.shared_hidden = model.ffn_hidden;
  e.dense_hidden = count_or(config, "intermediate_size_mlp", kMostWidth, 16384);
  const double balance = number_or(config, "router_aux_loss_coef", 0.001);
  e.balance_loss = flag_or(config, "output_router_logits", false) ? balance : 0;
  return e;
}

}  // namespace

Model read_llama4(const Config& config) {
  Model model;
  read_common(config, model);
  model.kv_heads = count_or(config, "num_key_value_heads", kMostHeads, 8);
  model.head_dim = count_or(config, "head_dim", kMostHeads, 128);
  model.ffn_hidden = config.at("intermediate_size").integer(1, kMostWidth);
  model.max_sequence = config.at("max_position_embeddings").integer(1, kMostPositions);
  model.norm = Norm::kRmsNorm;
  model.norm_epsilon = number_or(config, "rms_norm_eps", 1e-5);
  model.positions = Positions::kRotary;
  model.rotary.theta = 500000;
  read_rotary(config, model, "rope_theta", "partial_rotary_factor", 1);
  if (model.rotary.share != 1) config.fail("partial_rotary_factor is not supported but 1");
  model.activation = activation_of(config, "hidden_act", true, "silu");
  only(config, "attention_bias", !flag_or(config, "attention_bias", false), "false");
  model.qkv_bias = model.linear_bias = false;
  model.tied_embeddings = flag_or(config, "tie_word_embeddings", false);
  model.plain_head_norms = flag_or(config, "use_qk_norm", true);
  // Theirs are applied after the rotation, which keeps lengths unless it has an amplitude.
  if (model.plain_head_norms && model.rotary.amplitude != 1) {
    config.at("use_qk_norm").fail("is not supported with rotary positions that lengthen heads (YaRN)");
  }
  read_chunks(config, model);
  read_temperature(config, model);
  model.experts = read_experts(config, model);
  return model;
}

}  // namespace trivium::models
