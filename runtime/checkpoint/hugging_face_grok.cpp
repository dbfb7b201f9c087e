// Grok-1 in the form of its ports to transformers, which itself has no such model: names as vLLM reads them
// (vllm/model_executor/models/grok1.py).
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/hugging_face_table.h"

namespace trivium::runtime::checkpoint {

static Correspondence table_of(std::string ours, std::string theirs, const models::Model& m) {
  Correspondence c = vector_of(std::move(ours), std::move(theirs), m.hidden);
  c.rows = m.vocab;
  return c;
}

void add_grok(std::vector<Correspondence>& rows, const models::Model& m) {
  const std::int64_t h = m.hidden, q = m.heads * m.head_dim, k = m.kv_heads * m.head_dim;
  rows.push_back(table_of("wte.weight", "model.embed_tokens.weight", m));
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    const std::string at = fmt::format("h.{}.", layer), there = fmt::format("model.layers.{}.", layer);
    const auto norm = [&](const char* ours, const char* theirs) {
      rows.push_back(vector_of(at + ours + ".weight", there + theirs + ".scale", h));
    };
    const std::string attention = there + "attn.";
    norm("ln_1", "pre_attn_norm");
    rows.push_back(matrix_of(at + "attn.c_attn.weight", h,
                             {attention + "q_proj.weight", attention + "k_proj.weight", attention + "v_proj.weight"},
                             {q, k, k}));
    rows.push_back(matrix_of(at + "attn.c_proj.weight", q, {attention + "o_proj.weight"}, {h}));
    norm("ln_1_out", "post_attn_norm");
    norm("ln_2", "pre_moe_norm");
    add_mixture(rows, m, layer);
    norm("ln_2_out", "post_moe_norm");
  }
  rows.push_back(vector_of("ln_f.weight", "model.norm.scale", h));
  if (!m.tied_embeddings) rows.push_back(table_of("lm_head.weight", "lm_head.weight", m));
}

nlohmann::json grok_config(const models::Model& m) {
  const models::Experts& e = *m.experts;
  const double usual = 1 / std::sqrt(static_cast<double>(m.head_dim));
  nlohmann::json config = {{"model_type", "grok-1"},
                           {"architectures", {"Grok1ModelForCausalLM"}},
                           {"vocab_size", m.vocab},
                           {"max_position_embeddings", m.max_sequence},
                           {"hidden_size", m.hidden},
                           {"num_hidden_layers", m.layers},
                           {"num_attention_heads", m.heads},
                           {"num_key_value_heads", m.kv_heads},
                           {"intermediate_size", m.ffn_hidden},
                           {"rms_norm_eps", m.norm_epsilon},
                           {"rope_theta", m.rotary.theta},
                           {"tie_word_embeddings", m.tied_embeddings},
                           {"attn_output_multiplier", m.attention_scale == 0 ? usual : m.attention_scale},
                           {"max_attn_value", m.attention_soft_cap},
                           {"embedding_multiplier_scale", m.embedding_scale},
                           {"output_multiplier_scale", m.logit_scale},
                           {"num_experts", e.count},
                           {"num_experts_per_tok", e.top_k},
                           {"output_router_logits", e.balance_loss > 0}};
  if (e.balance_loss > 0) config["router_aux_loss_coef"] = e.balance_loss;
  return config;
}

}  // namespace trivium::runtime::checkpoint
