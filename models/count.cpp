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

double mlp_flops(const Model& m, std::int64_t inner) {
  return 2 * (m.gated() ? 3.0 : 2.0) * static_cast<double>(m.hidden) * static_cast<double>(inner);
}

/// Forward FLOPs of one token in a layer, without the attention core: 2 for each weight of a matrix it meets.
double matrix_flops(const Model& m, const LayerKind& kind) {
  const double hidden = static_cast<double>(m.hidden);
  const double attention = 2 * static_cast<double>(head_weights(m) + m.heads * m.value_dim() * m.hidden);
  if (!kind.mixture) return attention + mlp_flops(m, m.dense_hidden());
  const double router = 2 * hidden * static_cast<double>(m.experts->count);
  return attention + router + static_cast<double>(m.experts->top_k) * mlp_flops(m, m.ffn_hidden) +
         mlp_flops(m, m.experts->shared_hidden);
}

/// Those of its attention core: scores (q k^T) and weighted values, 2 s a each, the full square, as kernels without a
/// causal shortcut compute it.
double core_flops(const Model& m, const LayerKind& kind, std::int64_t sequence) {
  const double keys = 2 * keys_seen(sequence, kind.window, m.window && m.window->chunked);
  return 2 * keys * static_cast<double>(query_width(m) + m.heads * m.value_dim());
}

/// Of an MLP with its router, and those of them that a token does not meet.
struct MlpCount {
  std::int64_t all = 0, idle = 0;
};
MlpCount mlp_of(const Model& m, const LayerKind& kind) {
  if (!kind.mixture) return {mlp_parameters(m, m.dense_hidden()), 0};
  const Experts& e = *m.experts;
  const std::int64_t expert = mlp_parameters(m, m.ffn_hidden);
  const std::int64_t biases = (m.linear_bias ? 1 : 0) + (e.correction_bias ? 1 : 0);
  const std::int64_t shared = e.shared_hidden > 0 ? mlp_parameters(m, e.shared_hidden) : 0;
  return {e.count * expert + (m.hidden + biases) * e.count + shared, (e.count - e.top_k) * expert};
}

std::int64_t norm_parameters(const Model& m) {
  if (m.plain_norms) return 0;
  return m.norm == Norm::kLayerNorm ? 2 * m.hidden : m.hidden;
}

/// All norms of one layer.
std::int64_t layer_norms(const Model& m) {
  std::int64_t norms = m.norms_per_layer() * norm_parameters(m);
  if (m.head_norms) norms += 2 * m.head_dim;  // one for queries, one for keys
  if (m.latent) norms += m.latent->query_rank + m.latent->key_rank;
  return norms;
}

/// Adds what the extras of `layers` layers of this kind have, part by part.
void add_extras(const Model& m, const LayerKind& kind, std::int64_t layers, ParameterCount& count) {
  for (const Extra& extra : m.extras) {
    if (!has(extra, kind)) continue;
    const std::int64_t all = layers * extra.parameters;
    (extra.part == Extra::Part::kAttention ? count.attention
     : extra.part == Extra::Part::kMlp     ? count.mlp
                                           : count.norms) += all;
  }
}

/// The same of those that stand outside of layers.
void add_ends_extras(const Model& m, ParameterCount& count) {
  for (const Extra& extra : m.extras) {
    if (extra.layers != Extra::Layers::kNone) continue;
    (extra.part == Extra::Part::kHead        ? count.head
     : extra.part == Extra::Part::kEmbedding ? count.position_embedding
                                             : count.norms) += extra.parameters;
  }
}

}  // namespace

ParameterCount count_parameters(const Model& model) {
  ParameterCount count;
  count.token_embedding = model.vocab * model.hidden;
  count.position_embedding = model.positions == Positions::kLearned ? model.max_sequence * model.hidden : 0;
  count.attention = model.layers * attention_parameters(model);
  std::int64_t idle = 0;  // experts that one token does not visit
  for (const LayersOfKind& alike : layer_kinds(model)) {
    const MlpCount mlp = mlp_of(model, alike.kind);
    count.mlp += alike.count * mlp.all;
    idle += alike.count * mlp.idle;
    add_extras(model, alike.kind, alike.count, count);
  }
  count.norms += model.layers * layer_norms(model) + (model.embedding_norm ? 2 : 1) * norm_parameters(model);
  count.head = model.tied_embeddings ? 0 : model.vocab * model.hidden;
  add_ends_extras(model, count);
  if (model.mtp) {  // norms of what comes, of embeddings and of what goes to the output matrix; the projection
    const MlpCount mlp = mlp_of(model, model.mtp_kind());
    const std::int64_t layer =
        attention_parameters(model) + mlp.all + layer_norms(model) + model.extra_parameters(model.mtp_kind());
    count.mtp = model.mtp->depth * (layer + 3 * norm_parameters(model) + 2 * model.hidden * model.hidden);
    idle += model.mtp->depth * mlp.idle;
  }
  count.total = count.token_embedding + count.position_embedding + count.attention + count.mlp + count.norms +
                count.head + count.mtp;
  count.active = count.total - idle;
  return count;
}

ForwardFlops module_flops(const Model& model, std::int64_t sequence) {
  ForwardFlops flops;
  const auto add_layers = [&](const LayerKind& kind, double layers) {
    flops.core += layers * core_flops(model, kind, sequence);
    const double attention =
        2 * static_cast<double>(head_weights(model) + model.heads * model.value_dim() * model.hidden);
    (kind.mixture ? flops.mixture : flops.mlp) += layers * (matrix_flops(model, kind) - attention);
    if (kind.mixture) flops.shared += layers * mlp_flops(model, model.experts->shared_hidden);
    if (!model.latent) return;
    const Latent& l = *model.latent;
    const std::int64_t down = model.hidden * (l.query_rank + l.key_rank + l.rotary_dim);
    flops.latent_heads += layers * 2 * static_cast<double>(head_weights(model) - down);
  };
  for (const LayersOfKind& alike : layer_kinds(model)) add_layers(alike.kind, static_cast<double>(alike.count));
  if (model.mtp) add_layers(model.mtp_kind(), static_cast<double>(model.mtp->depth));
  return flops;
}

FlopsPerToken flops_per_token(const Model& model, std::int64_t sequence) {
  double matrices = 0, core = 0;  // forward
  const auto add_layers = [&](const LayerKind& kind, std::int64_t count) {
    matrices += static_cast<double>(count) * matrix_flops(model, kind);
    core += static_cast<double>(count) * core_flops(model, kind, sequence);
  };
  for (const LayersOfKind& alike : layer_kinds(model)) add_layers(alike.kind, alike.count);
  const double hidden = static_cast<double>(model.hidden), modules = static_cast<double>(model.mtp_depth());
  if (model.mtp) add_layers(model.mtp_kind(), model.mtp->depth);
  const double logits = (1 + modules) * 2 * hidden * static_cast<double>(model.vocab);
  const double projections = modules * 4 * hidden * hidden;

  FlopsPerToken flops;
  flops.model = 3 * (matrices + core + projections + logits);  // the backward of a product is two products
  flops.hardware_full = flops.model + matrices + core;
  flops.hardware_selective = flops.model + 3 * core;  // 12 s a more: see the header
  return flops;
}

}  // namespace trivium::models
