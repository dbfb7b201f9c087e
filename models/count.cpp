// Parameters and floating-point operations of a model, part by part.
#include "models/model.h"

namespace trivium::models {
namespace {

/// Width of all query heads together, and of all key (or value) heads: equal unless keys and values are shared.
std::int64_t query_width(const Model& m) { return m.heads * m.head_dim; }
std::int64_t key_width(const Model& m) { return m.kv_heads * m.head_dim; }

/// Of what makes queries, keys and values of the hidden state.
std::int64_t head_weights(const Model& m) {
  if (!m.latent) return m.hidden * (query_width(m) + 2 * key_width(m));
  const Latent& l = *m.latent;
  const std::int64_t down = m.hidden * (l.query_rank + l.key_rank + l.rotary_dim);
  const std::int64_t queries = (l.query_rank > 0 ? l.query_rank : m.hidden) * query_width(m);
  return down + queries + l.key_rank * m.heads * (l.plain_dim + l.value_dim);
}

std::int64_t attention_parameters(const Model& m) {
  const std::int64_t projections = query_width(m) + 2 * key_width(m);
  const std::int64_t weights = head_weights(m) + m.heads * m.value_dim() * m.hidden;
  const std::int64_t sinks = m.attention_sinks ? m.heads : 0;
  return weights + (m.qkv_bias ? projections : 0) + (m.linear_bias ? m.hidden : 0) + sinks;
}

/// One MLP, or one expert. A gated one has two matrices into the inner width: gate and value.
std::int64_t mlp_parameters(const Model& m, std::int64_t inner) {
  const std::int64_t into = m.gated() ? 2 : 1;
  const std::int64_t biases = into * inner + m.hidden;
  return (into + 1) * m.hidden * inner + (m.linear_bias ? biases : 0);
}

/// Forward FLOPs of one token in every layer, without the attention core: 2 for each weight of a matrix it meets.
double layer_matrix_flops(const Model& m) {
  const double hidden = static_cast<double>(m.hidden);
  const double attention = 2 * static_cast<double>(head_weights(m) + m.heads * m.value_dim() * m.hidden);
  const auto mlp_of = [&](std::int64_t inner) {
    return 2 * (m.gated() ? 3.0 : 2.0) * hidden * static_cast<double>(inner);
  };
  const double mlp = mlp_of(m.dense_hidden());
  const double layers = static_cast<double>(m.layers);
  if (!m.experts) return layers * (attention + mlp);
  const double mixtures = static_cast<double>(m.mixture_layers());
  const double router = 2 * hidden * static_cast<double>(m.experts->count);
  const double mixture =
      router + static_cast<double>(m.experts->top_k) * mlp_of(m.ffn_hidden) + mlp_of(m.experts->shared_hidden);
  return layers * attention + (layers - mixtures) * mlp + mixtures * mixture;
}

}  // namespace

ParameterCount count_parameters(const Model& model) {
  ParameterCount count;
  count.token_embedding = model.vocab * model.hidden;
  count.position_embedding = model.positions == Positions::kLearned ? model.max_sequence * model.hidden : 0;
  count.attention = model.layers * attention_parameters(model);

  const std::int64_t mixtures = model.mixture_layers();
  const std::int64_t mlp = mlp_parameters(model, model.ffn_hidden);
  count.mlp = (model.layers - mixtures) * mlp_parameters(model, model.dense_hidden());
  std::int64_t idle = 0;  // experts that one token does not visit
  if (model.experts) {
    const std::int64_t biases = (model.linear_bias ? 1 : 0) + (model.experts->correction_bias ? 1 : 0);
    const std::int64_t router = (model.hidden + biases) * model.experts->count;
    const std::int64_t shared =
        model.experts->shared_hidden > 0 ? mlp_parameters(model, model.experts->shared_hidden) : 0;
    count.mlp += mixtures * (model.experts->count * mlp + router + shared);
    idle = mixtures * (model.experts->count - model.experts->top_k) * mlp;
  }

  const std::int64_t norm = model.norm == Norm::kLayerNorm ? 2 * model.hidden : model.hidden;
  count.norms = (model.layers * model.norms_per_layer() + 1) * norm;
  if (model.head_norms) count.norms += model.layers * 2 * model.head_dim;  // one for queries, one for keys
  if (model.latent) count.norms += model.layers * (model.latent->query_rank + model.latent->key_rank);
  count.head = model.tied_embeddings ? 0 : model.vocab * model.hidden;
  count.total =
      count.token_embedding + count.position_embedding + count.attention + count.mlp + count.norms + count.head;
  count.active = count.total - idle;
  return count;
}

FlopsPerToken flops_per_token(const Model& model, std::int64_t sequence) {
  // Scores (q k^T) and weighted values: 2 s a each, the full square, as kernels without a causal shortcut compute it.
  double keys = 0;
  for (const LayersOfKind& alike : layer_kinds(model)) {
    keys += static_cast<double>(alike.count) * 2 *
            keys_seen(sequence, alike.kind.window, model.window && model.window->chunked);
  }
  const double core = 2 * keys * static_cast<double>(query_width(model) + model.heads * model.value_dim());
  const double layers_forward = layer_matrix_flops(model) + core;
  const double logits = 2 * static_cast<double>(model.hidden) * static_cast<double>(model.vocab);

  FlopsPerToken flops;
  flops.model = 3 * (layers_forward + logits);  // the backward of a product is two products
  flops.hardware_full = flops.model + layers_forward;
  flops.hardware_selective = flops.model + 3 * core;  // 12 s a more: see the header
  return flops;
}

}  // namespace trivium::models
