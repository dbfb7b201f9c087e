// Parameters and floating-point operations of a model, part by part.
#include "models/model.h"

namespace trivium::models {
namespace {

/// Width of all query heads together, and of all key (or value) heads: equal unless keys and values are shared.
std::int64_t query_width(const Model& m) { return m.heads * m.head_dim; }
std::int64_t key_width(const Model& m) { return m.kv_heads * m.head_dim; }

std::int64_t attention_parameters(const Model& m) {
  const std::int64_t projections = query_width(m) + 2 * key_width(m);
  const std::int64_t weights = m.hidden * projections + query_width(m) * m.hidden;
  const std::int64_t sinks = m.attention_sinks ? m.heads : 0;
  return weights + (m.qkv_bias ? projections : 0) + (m.linear_bias ? m.hidden : 0) + sinks;
}

/// One MLP, or one expert. A gated one has two matrices into the inner width: gate and value.
std::int64_t mlp_parameters(const Model& m) {
  const std::int64_t into = m.gated() ? 2 : 1;
  const std::int64_t biases = into * m.ffn_hidden + m.hidden;
  return (into + 1) * m.hidden * m.ffn_hidden + (m.linear_bias ? biases : 0);
}

/// Forward FLOPs of one token in every layer, without the attention core: 2 for each weight of a matrix it meets.
double layer_matrix_flops(const Model& m) {
  const double hidden = static_cast<double>(m.hidden);
  const double attention = 2 * hidden * static_cast<double>(2 * query_width(m) + 2 * key_width(m));
  const double mlp = 2 * (m.gated() ? 3.0 : 2.0) * hidden * static_cast<double>(m.ffn_hidden);
  const double layers = static_cast<double>(m.layers);
  if (!m.experts) return layers * (attention + mlp);
  const double mixtures = static_cast<double>(m.mixture_layers());
  const double router = 2 * hidden * static_cast<double>(m.experts->count);
  const double mixture = router + static_cast<double>(m.experts->top_k) * mlp;
  return layers * attention + (layers - mixtures) * mlp + mixtures * mixture;
}

}  // namespace

ParameterCount count_parameters(const Model& model) {
  ParameterCount count;
  count.token_embedding = model.vocab * model.hidden;
  count.position_embedding = model.positions == Positions::kLearned ? model.max_sequence * model.hidden : 0;
  count.attention = model.layers * attention_parameters(model);

  const std::int64_t mixtures = model.mixture_layers();
  const std::int64_t mlp = mlp_parameters(model);
  count.mlp = (model.layers - mixtures) * mlp;
  std::int64_t idle = 0;  // experts that one token does not visit
  if (model.experts) {
    const std::int64_t router = (model.hidden + (model.linear_bias ? 1 : 0)) * model.experts->count;
    count.mlp += mixtures * (model.experts->count * mlp + router);
    idle = mixtures * (model.experts->count - model.experts->top_k) * mlp;
  }

  const std::int64_t norm = model.norm == Norm::kLayerNorm ? 2 * model.hidden : model.hidden;
  count.norms = (model.layers * model.norms_per_layer() + 1) * norm;
  if (model.head_norms) count.norms += model.layers * 2 * model.head_dim;  // one for queries, one for keys
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
    keys += static_cast<double>(alike.count) * 2 * keys_seen(sequence, alike.kind.window);
  }
  const double core = 4 * keys * static_cast<double>(query_width(model));
  const double layers_forward = layer_matrix_flops(model) + core;
  const double logits = 2 * static_cast<double>(model.hidden) * static_cast<double>(model.vocab);

  FlopsPerToken flops;
  flops.model = 3 * (layers_forward + logits);  // the backward of a product is two products
  flops.hardware_full = flops.model + layers_forward;
  flops.hardware_selective = flops.model + 3 * core;  // 12 s a more: see the header
  return flops;
}

}  // namespace trivium::models
