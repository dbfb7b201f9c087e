// Mixtures of experts and latent attention in Hugging Face's files. Names and shapes: transformers,
// models/mixtral, models/qwen3_moe, models/deepseek_v3 and models/glm4_moe, as the released files have them: a tensor
// for each expert. Grok-1's are those of its port (hugging_face_grok.cpp).
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/families.h"
#include "runtime/checkpoint/hugging_face_table.h"

namespace trivium::runtime::checkpoint {
Correspondence matrix_of(std::string ours, std::int64_t in, std::vector<std::string> theirs,
                         std::vector<std::int64_t> widths, std::int64_t blocks) {
  Correspondence c;
  c.ours = std::move(ours);
  c.rows = in * blocks;
  for (const std::int64_t width : widths) c.columns += width;
  c.theirs = std::move(theirs);
  c.widths = std::move(widths);
  c.transposed = true;
  c.blocks = blocks;
  return c;
}

Correspondence vector_of(std::string ours, std::string theirs, std::int64_t length) {
  Correspondence c;
  c.ours = std::move(ours);
  c.rows = 1;
  c.columns = length;
  c.theirs = {std::move(theirs)};
  c.widths = {length};
  return c;
}

namespace {

/// What the families call the parts of a mixture.
struct MixtureNames {
  const char *block, *gate, *up, *down;
};

MixtureNames mixture_names(const models::Model& model) {
  if (is_grok(model)) return {"moe_block", "linear", "linear_v", "linear_1"};
  if (mixture_type(model) == "mixtral") return {"block_sparse_moe", "w1", "w3", "w2"};
  return {"mlp", "gate_proj", "up_proj", "down_proj"};
}

}  // namespace

void place_head(std::vector<std::int64_t>& places, std::int64_t begin, std::int64_t plain, std::int64_t turning) {
  for (std::int64_t i = 0; i < plain; ++i) places.push_back(begin + turning + i);
  for (std::int64_t i = 0; i < turning; ++i) places.push_back(begin + i / 2 + i % 2 * (turning / 2));
}

std::int64_t Correspondence::ours_at(std::size_t part, std::int64_t row, std::int64_t column) const {
  const std::size_t each = widths.size();
  for (std::size_t i = 0; i < part % each; ++i) column += widths[i];
  const auto block = static_cast<std::int64_t>(part / each);
  return (block * block_rows() + row) * columns + (places.empty() ? column : places[static_cast<std::size_t>(column)]);
}

std::string mixture_type(const models::Model& model) {
  if (!model.experts || model.norm != models::Norm::kRmsNorm || model.positions != models::Positions::kRotary ||
      !model.gated() || model.parallel_block || model.linear_bias || model.experts->every != 1 || !is_plain(model) ||
      model.window || model.attention_sinks || model.activation == models::Activation::kClampedSwiglu) {
    return "";
  }
  const models::Experts& e = *model.experts;
  const bool sigmoid = e.scores == models::Scores::kSigmoid;
  if (sigmoid && (!e.correction_bias || e.shared_hidden % model.ffn_hidden != 0)) return "";
  if (e.groups > 1 && e.group_best != (sigmoid ? 2 : 1)) return "";
  if (model.latent) {
    if (!sigmoid && (e.correction_bias || e.normalised || e.shared_hidden % model.ffn_hidden != 0)) return "";
    return sigmoid ? "deepseek_v3" : "deepseek_v2";
  }
  if (model.attention_scale != 0) return "";
  if (sigmoid) return "glm4_moe";
  const bool plain = !e.correction_bias && e.groups == 1 && e.scale == 1 && e.shared_hidden == 0 &&
                     e.dense_layers == 0 && e.dense_hidden == 0 && !model.qkv_bias && model.rotary.share == 1;
  if (!plain) return "";
  if (model.head_norms) return "qwen3_moe";
  return e.normalised ? "mixtral" : "";
}

void add_latents(std::vector<Correspondence>& rows, const models::Model& m, std::int64_t layer) {
  const models::Latent& l = *m.latent;
  const std::string at = fmt::format("h.{}.attn.", layer), there = fmt::format("model.layers.{}.self_attn.", layer);
  const std::int64_t keys = l.key_rank + l.rotary_dim;
  std::vector<std::string> narrow{there + "kv_a_proj_with_mqa.weight"};
  std::vector<std::int64_t> widths{keys}, places;
  if (l.query_rank > 0) {
    narrow.insert(narrow.begin(), there + "q_a_proj.weight");
    widths.insert(widths.begin(), l.query_rank);
  }
  for (std::int64_t i = 0; i < l.query_rank + l.key_rank; ++i) places.push_back(i);
  place_head(places, l.query_rank + l.key_rank, 0, l.rotary_dim);
  rows.push_back(matrix_of(at + "latents.weight", m.hidden, narrow, widths));
  rows.back().places = places;
  if (l.query_rank > 0) {
    rows.push_back(vector_of(at + "query_latent_norm.weight", there + "q_a_layernorm.weight", l.query_rank));
  }
  rows.push_back(vector_of(at + "key_latent_norm.weight", there + "kv_a_layernorm.weight", l.key_rank));
  rows.push_back(matrix_of(at + "query_heads.weight", l.query_rank > 0 ? l.query_rank : m.hidden,
                           {there + (l.query_rank > 0 ? "q_b_proj.weight" : "q_proj.weight")}, {m.heads * m.head_dim}));
  for (std::int64_t h = 0; h < m.heads; ++h) place_head(rows.back().places, h * m.head_dim, l.plain_dim, l.rotary_dim);
  rows.push_back(matrix_of(at + "key_heads.weight", l.key_rank, {there + "kv_b_proj.weight"},
                           {m.heads * (l.plain_dim + l.value_dim)}));
}

void add_mixture(std::vector<Correspondence>& rows, const models::Model& m, std::int64_t layer) {
  const models::Experts& e = *m.experts;
  const MixtureNames names = mixture_names(m);
  const std::string at = fmt::format("h.{}.mlp.", layer);
  const std::string there = fmt::format("model.layers.{}.{}.", layer, names.block);
  rows.push_back(matrix_of(at + "router.weight", m.hidden, {there + "gate.weight"}, {e.count}));
  if (e.correction_bias) {
    rows.push_back(vector_of(at + "router.correction", there + "gate.e_score_correction_bias", e.count));
  }
  std::vector<std::string> into, out;
  for (std::int64_t expert = 0; expert < e.count; ++expert) {
    const std::string one = fmt::format("{}experts.{}.", there, expert);
    into.push_back(fmt::format("{}{}.weight", one, names.gate));
    into.push_back(fmt::format("{}{}.weight", one, names.up));
    out.push_back(fmt::format("{}{}.weight", one, names.down));
  }
  rows.push_back(matrix_of(at + "experts.c_fc.weight", m.hidden, into, {m.ffn_hidden, m.ffn_hidden}, e.count));
  rows.push_back(matrix_of(at + "experts.c_proj.weight", m.ffn_hidden, out, {m.hidden}, e.count));
  if (e.shared_hidden == 0) return;
  const std::string shared = there + "shared_experts.";
  rows.push_back(matrix_of(at + "shared.c_fc.weight", m.hidden,
                           {shared + "gate_proj.weight", shared + "up_proj.weight"},
                           {e.shared_hidden, e.shared_hidden}));
  rows.push_back(matrix_of(at + "shared.c_proj.weight", e.shared_hidden, {shared + "down_proj.weight"}, {m.hidden}));
}

namespace {

/// YaRN's weights of the amplitude that would give the model's factor on scores, and its own amplitude.
void describe_score_scale(nlohmann::json& config, const models::Model& m) {
  if (m.attention_scale == 0 || !config.contains("rope_scaling")) return;
  const double longer = std::sqrt(m.attention_scale * std::sqrt(static_cast<double>(m.head_dim)));
  config["rope_scaling"]["mscale_all_dim"] = (longer - 1) / (0.1 * std::log(m.rotary.factor));
}

}  // namespace

void describe_mixture(nlohmann::json& config, const models::Model& m) {
  const models::Experts& e = *m.experts;
  const std::string type = mixture_type(m);
  config.erase("mlp_bias");
  config["num_experts_per_tok"] = e.top_k;
  config["output_router_logits"] = e.balance_loss > 0;
  if (e.balance_loss > 0) config["router_aux_loss_coef"] = e.balance_loss;
  if (type == "mixtral") {
    config.erase("attention_bias");
    config["num_local_experts"] = e.count;
    return;
  }
  config["moe_intermediate_size"] = m.ffn_hidden;
  config["norm_topk_prob"] = e.normalised;
  if (type == "qwen3_moe") {
    config["num_experts"] = e.count;
    return;
  }
  config["intermediate_size"] = m.dense_hidden();
  config["n_routed_experts"] = e.count;
  config["n_shared_experts"] = e.shared_hidden / m.ffn_hidden;
  config["first_k_dense_replace"] = e.dense_layers;
  config["routed_scaling_factor"] = e.scale;
  config["n_group"] = e.groups;
  config["topk_group"] = e.top_groups;
  // Where it is missing, transformers takes V3 and GLM-4.5 to have one.
  if (m.mtp || type != "deepseek_v2") config["num_nextn_predict_layers"] = m.mtp_depth();
  if (type == "glm4_moe") {
    config["use_qk_norm"] = m.head_norms;
    config["partial_rotary_factor"] = m.rotary.share;
    return;
  }
  const models::Latent& l = *m.latent;
  config.erase("head_dim");
  if (type == "deepseek_v2") config["topk_method"] = e.groups > 1 ? "group_limited_greedy" : "greedy";
  config["q_lora_rank"] = l.query_rank > 0 ? nlohmann::json(l.query_rank) : nlohmann::json();
  config["kv_lora_rank"] = l.key_rank;
  config["qk_nope_head_dim"] = l.plain_dim;
  config["qk_rope_head_dim"] = l.rotary_dim;
  config["v_head_dim"] = l.value_dim;
  describe_score_scale(config, m);
}

}  // namespace trivium::runtime::checkpoint
