#include "program/lower/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace trivium::program {
namespace {

constexpr double kInitStd = 0.02;  // Radford et al. 2019 (GPT-2), §2.3; residual projections divided by sqrt(2 layers)

// Fills `chunks` chunks with `load` units each in turn, remainder to the chunks after the first.
std::vector<int> spread(std::int64_t load, int chunks) {
  const auto even = static_cast<int>(load / chunks);
  auto rest = static_cast<int>(load % chunks);
  std::vector<int> counts(static_cast<std::size_t>(chunks), even);
  for (int i = 1; rest > 0; i = (i + 1) % chunks, --rest) ++counts[static_cast<std::size_t>(i % chunks)];
  return counts;
}

Parameter vector_parameter(std::string name, int layer, std::int64_t length, double value) {
  Parameter p;
  p.name = std::move(name);
  p.layer = static_cast<std::int16_t>(layer);
  p.rows = p.local_rows = 1;
  p.columns = p.local_columns = length;
  p.init_value = value;
  return p;
}

Parameter matrix_parameter(std::string name, int layer, std::int64_t rows, std::int64_t columns, double std) {
  Parameter p = vector_parameter(std::move(name), layer, columns, 0);
  p.rows = p.local_rows = rows;
  p.decayed = true;
  p.init_std = std;
  return p;
}

Parameter split_rows(Parameter p, int tensor) {
  p.split = Split::kRows;
  p.local_rows = p.rows / tensor;
  return p;
}

Parameter split_columns(Parameter p, int tensor, std::vector<std::int64_t> sections = {}) {
  p.split = Split::kColumns;
  p.local_columns = p.columns / tensor;
  p.sections = std::move(sections);
  return p;
}

Parameter partial_over_tensor(Parameter p) {
  p.partial_over_tensor = true;
  return p;
}

// Query heads are split; key heads too, or where they are fewer than ranks each goes to several of them.
Parameter split_heads(Parameter p, const Job& job) {
  const models::Model& model = job.model;
  const std::int64_t query = model.heads * model.head_dim, key = model.kv_heads * model.head_dim;
  p = split_columns(std::move(p), job.plan.tensor, {query, key, key});
  p.key_ranks = key_ranks(job);
  if (p.key_ranks == 1) return p;
  p.key_columns = 2 * model.head_dim;
  p.local_columns = query / job.plan.tensor + p.key_columns;
  return p;
}

// Adds weight (and for layer norm bias) of a norm.
void add_norm(std::vector<Parameter>& list, const models::Model& model, const std::string& name, int layer) {
  list.push_back(vector_parameter(name + ".weight", layer, model.hidden, 1));
  if (model.norm == models::Norm::kLayerNorm) list.push_back(vector_parameter(name + ".bias", layer, model.hidden, 0));
}

// Of extras that stand before the first layer, or behind the last one.
std::int64_t outside_extras(const models::Model& model, bool first) {
  std::int64_t sum = 0;
  for (const models::Extra& extra : model.extras) {
    const bool stands_first = extra.part == models::Extra::Part::kEmbedding;
    if (extra.layers == models::Extra::Layers::kNone && stands_first == first) sum += extra.parameters;
  }
  return sum;
}

double residual_std(const models::Model& model) {
  return kInitStd / std::sqrt(2.0 * static_cast<double>(model.layers));
}

Parameter vocabulary_matrix(const Job& job, std::string name) {
  Parameter p = matrix_parameter(std::move(name), -1, job.model.vocab, job.model.hidden, kInitStd);
  p.split = Split::kRows;
  p.local_rows = padded_vocabulary(job) / job.plan.tensor;
  return p;
}

}  // namespace

std::vector<int> chunk_layers(std::int64_t layers, const Plan& plan) {
  if (!plan.stage_layers.empty()) return plan.stage_layers;
  const int chunks = plan.chunks();
  const StackTraits* stack = find_stack(plan.stack);
  const bool ends_count = stack != nullptr && stack->balances_embedding_as_layer;
  // With the ends counted as a layer each the even share must leave a real layer in the first and last chunk.
  if (ends_count && chunks > 1 && (layers + 2) / chunks >= 2 && layers % chunks != 0) {
    std::vector<int> counts = spread(layers + 2, chunks);
    --counts.front();
    --counts.back();
    return counts;
  }
  return spread(layers, chunks);
}

std::vector<int> chunk_layers(const Job& job) { return chunk_layers(job.model.layers, job.plan); }

std::int64_t padded_vocabulary(const Job& job) {
  const StackTraits* stack = find_stack(job.plan.stack);
  const bool pads = stack != nullptr && (stack->pads_without_tensor || job.plan.tensor > 1);
  const std::int64_t multiple = job.plan.tensor * (pads ? stack->vocab_multiple : 1);
  return (job.model.vocab + multiple - 1) / multiple * multiple;
}

int transfer_parts(const Job& job) {
  const Plan& plan = job.plan;
  const StackTraits* stack = find_stack(plan.stack);
  const bool of_stack = plan.scatter_gather == ScatterGather::kStack && stack != nullptr && stack->scatter_gather;
  if (!of_stack && plan.scatter_gather != ScatterGather::kOn) return 1;
  if (plan.tensor == 1 || plan.pipeline == 1 || plan.sequence_parallel) return 1;
  for (const int size : micro_batch_sizes(plan)) {
    if (job.training.sequence * size / plan.context * job.model.hidden % plan.tensor != 0) return 1;
  }
  return plan.tensor;
}

int key_ranks(const Job& job) {
  return static_cast<int>(std::max<std::int64_t>(1, job.plan.tensor / job.model.kv_heads));
}

Group group_splitting_experts(const Plan& plan) { return folds_experts(plan) ? Group::kExpertTensor : Group::kTensor; }

std::int64_t local_section(const Parameter& p, std::size_t section, int tensor_ranks) {
  return p.sections[section] * (section > 0 ? p.key_ranks : 1) / cut_ranks(p, tensor_ranks);
}

std::vector<Parameter> embedding_parameters(const Job& job) {
  std::vector<Parameter> list;
  if (job.model.positions == models::Positions::kLearned) {
    list.push_back(matrix_parameter("wpe.weight", -1, job.model.max_sequence, job.model.hidden, kInitStd));
  }
  list.push_back(vocabulary_matrix(job, "wte.weight"));
  if (job.model.embedding_norm) add_norm(list, job.model, "ln_e", -1);
  const std::int64_t extra = outside_extras(job.model, true);
  if (extra > 0) list.push_back(vector_parameter("extras.first.weight", -1, extra, 0));
  return list;
}

std::int64_t expert_capacity(const models::Experts& experts, std::int64_t sequence) {
  const double share = static_cast<double>(sequence * experts.top_k) / static_cast<double>(experts.count);
  return std::min(sequence, static_cast<std::int64_t>(std::ceil(experts.capacity_factor * share)));
}

std::int64_t dropless_rows(const models::Experts& experts, std::int64_t tokens, int expert, int tensor) {
  const std::int64_t most = tokens * std::min(experts.top_k, experts.count / expert);
  const double even = static_cast<double>(tokens * experts.top_k) / expert * (expert > 1 ? experts.imbalance : 1);
  const auto rows = std::min(most, static_cast<std::int64_t>(std::ceil(even)));
  const std::int64_t own = (rows + tensor - 1) / tensor, local = experts.count / expert;
  return (own + local - 1) / local * local;
}

namespace {

/// The blocks of columns of an MLP's first matrix: with a gate two of `ffn` each.
std::vector<std::int64_t> gate_up_of(const models::Model& model, std::int64_t ffn) {
  return model.gated() ? std::vector<std::int64_t>{ffn, ffn} : std::vector<std::int64_t>{};
}

std::int64_t fc_width_of(const models::Model& model, std::int64_t ffn) { return model.gated() ? 2 * ffn : ffn; }

/// Parameters that every expert has one of, the part of one rank: those of an expert under those before it.
class ExpertList {
 public:
  explicit ExpertList(const Job& job)
      : job_(job), tensor_(expert_tensor_ranks(job.plan)), whole_(tensor_ == 1 && job.plan.tensor > 1) {}

  /// The ranks that split an expert each have all of it, and a part of its gradient.
  void replicated(Parameter p) {
    p.partial_over_tensor = !whole_;
    add(std::move(p));
  }
  void columns(Parameter p, std::vector<std::int64_t> sections) {
    add(split_columns(std::move(p), tensor_, std::move(sections)));
  }
  void rows(Parameter p) { add(split_rows(std::move(p), tensor_)); }
  std::vector<Parameter> take() { return std::move(list_); }

 private:
  void add(Parameter p) {
    if (whole_) p.split = Split::kExperts;
    p.experts = job_.model.experts->count;
    p.local_experts = p.experts / job_.plan.expert;
    p.expert_tensor = tensor_;
    p.rows *= p.experts;
    p.local_rows *= p.local_experts;
    list_.push_back(std::move(p));
  }

  const Job& job_;
  int tensor_;
  bool whole_;
  std::vector<Parameter> list_;
};

}  // namespace

std::vector<Parameter> expert_parameters(const Job& job, int layer) {
  const models::Model& model = job.model;
  const std::int64_t h = model.hidden, ffn = model.ffn_hidden, fc_width = fc_width_of(model, ffn);
  const std::vector<std::int64_t> gate_up = gate_up_of(model, ffn);
  ExpertList list(job);
  if (model.linear_bias) {  // the first of the ranks that split an expert has the second one's gradient
    list.replicated(vector_parameter("h.{}.mlp.experts.c_proj.bias", layer, h, 0));
    list.columns(vector_parameter("h.{}.mlp.experts.c_fc.bias", layer, fc_width, 0), gate_up);
  }
  list.columns(matrix_parameter("h.{}.mlp.experts.c_fc.weight", layer, h, fc_width, kInitStd), gate_up);
  list.rows(matrix_parameter("h.{}.mlp.experts.c_proj.weight", layer, ffn, h, residual_std(model)));
  return list.take();
}

namespace {

// Replicated over the tensor group: whoever holds other heads gives their latents another part of the gradient.
void add_latents(std::vector<Parameter>& list, const models::Model& model, int layer) {
  const models::Latent& latent = *model.latent;
  const std::int64_t narrow = latent.query_rank + latent.key_rank + latent.rotary_dim;
  list.push_back(matrix_parameter("h.{}.attn.latents.weight", layer, model.hidden, narrow, kInitStd));
  if (latent.query_rank > 0) {
    list.push_back(
        partial_over_tensor(vector_parameter("h.{}.attn.query_latent_norm.weight", layer, latent.query_rank, 1)));
  }
  list.push_back(partial_over_tensor(vector_parameter("h.{}.attn.key_latent_norm.weight", layer, latent.key_rank, 1)));
}

// What makes heads of the latents: each tensor rank its own.
void add_latent_heads(std::vector<Parameter>& list, const models::Model& model, int layer, int tensor) {
  const models::Latent& latent = *model.latent;
  const std::int64_t from = latent.query_rank > 0 ? latent.query_rank : model.hidden;
  list.push_back(split_columns(
      matrix_parameter("h.{}.attn.query_heads.weight", layer, from, model.heads * model.head_dim, kInitStd), tensor));
  list.push_back(split_columns(matrix_parameter("h.{}.attn.key_heads.weight", layer, latent.key_rank,
                                                model.heads * (latent.plain_dim + latent.value_dim), kInitStd),
                               tensor));
}

// Matrices of an MLP that is no mixture.
void add_mlp(std::vector<Parameter>& list, const Job& job, const std::string& name, int layer, std::int64_t ffn) {
  const std::int64_t h = job.model.hidden;
  list.push_back(split_columns(matrix_parameter(name + ".c_fc.weight", layer, h, fc_width_of(job.model, ffn), kInitStd),
                               job.plan.tensor, gate_up_of(job.model, ffn)));
  list.push_back(
      split_rows(matrix_parameter(name + ".c_proj.weight", layer, ffn, h, residual_std(job.model)), job.plan.tensor));
}

}  // namespace

std::vector<Parameter> layer_parameters(const Job& job, int layer, bool mixture) {
  const models::Model& model = job.model;
  const int tensor = job.plan.tensor;
  const std::int64_t h = model.hidden, query = model.heads * model.head_dim, key = model.kv_heads * model.head_dim;
  const std::int64_t ffn = model.dense_hidden(), qkv = query + 2 * key;
  std::vector<Parameter> list;
  add_norm(list, model, "h.{}.ln_1", layer);
  if (model.norms_per_layer() > 1) add_norm(list, model, "h.{}.ln_2", layer);
  if (model.branch_norms) {
    add_norm(list, model, "h.{}.ln_1_out", layer);
    add_norm(list, model, "h.{}.ln_2_out", layer);
  }
  if (model.head_norms) {  // every tensor rank has heads of its own
    for (const char* name : {"h.{}.attn.q_norm.weight", "h.{}.attn.k_norm.weight"}) {
      list.push_back(partial_over_tensor(vector_parameter(name, layer, model.head_dim, 1)));
    }
  }
  const models::LayerKind kind = layer < model.layers ? model.layer_kind(layer) : model.mtp_kind();
  if (const std::int64_t extra = model.extra_parameters(kind); extra > 0) {
    list.push_back(vector_parameter("h.{}.extras.weight", layer, extra, 0));
  }
  if (model.latent) add_latents(list, model, layer);
  if (model.linear_bias) {
    list.push_back(vector_parameter("h.{}.attn.c_proj.bias", layer, h, 0));
    if (!mixture) list.push_back(vector_parameter("h.{}.mlp.c_proj.bias", layer, h, 0));
  }
  if (mixture) {
    list.push_back(
        partial_over_tensor(matrix_parameter("h.{}.mlp.router.weight", layer, h, model.experts->count, kInitStd)));
    if (model.linear_bias) {
      list.push_back(partial_over_tensor(vector_parameter("h.{}.mlp.router.bias", layer, model.experts->count, 0)));
    }
    // Only chooses, so has no gradient and stays as it is.
    if (model.experts->correction_bias) {
      list.push_back(vector_parameter("h.{}.mlp.router.correction", layer, model.experts->count, 0));
    }
  }
  if (model.attention_sinks) {
    list.push_back(split_columns(vector_parameter("h.{}.attn.sinks", layer, model.heads, 0), tensor));
  }
  if (model.qkv_bias) {
    list.push_back(split_heads(vector_parameter("h.{}.attn.c_attn.bias", layer, qkv, 0), job));
  }
  if (model.linear_bias && !mixture) {
    list.push_back(split_columns(vector_parameter("h.{}.mlp.c_fc.bias", layer, fc_width_of(model, ffn), 0), tensor,
                                 gate_up_of(model, ffn)));
  }
  if (model.latent) {
    add_latent_heads(list, model, layer, tensor);
  } else {
    list.push_back(split_heads(matrix_parameter("h.{}.attn.c_attn.weight", layer, h, qkv, kInitStd), job));
  }
  list.push_back(split_rows(
      matrix_parameter("h.{}.attn.c_proj.weight", layer, model.heads * model.value_dim(), h, residual_std(model)),
      tensor));
  if (!mixture) {
    add_mlp(list, job, "h.{}.mlp", layer, ffn);
  } else if (model.experts->shared_hidden > 0) {
    add_mlp(list, job, "h.{}.mlp.shared", layer, model.experts->shared_hidden);
  }
  return list;
}

namespace {

// A is random with the variance of PEFT's kaiming_uniform(sqrt(5)), 1 / (3 in); B is 0.
Parameter first_factor(const std::string& target, int layer, std::int64_t in, std::int64_t rank) {
  return matrix_parameter(target + ".lora_a", layer, in, rank, 1 / std::sqrt(3.0 * static_cast<double>(in)));
}

Parameter second_factor(const std::string& target, int layer, std::int64_t rank, std::int64_t out) {
  return matrix_parameter(target + ".lora_b", layer, rank, out, 0);
}

/// Adapters of attention's products in front of its core.
void add_attention_adapters(std::vector<Parameter>& list, const Job& job, int layer) {
  const models::Model& model = job.model;
  const std::int64_t h = model.hidden, rank = job.training.lora.rank, query = model.heads * model.head_dim;
  if (!model.latent) {
    list.push_back(partial_over_tensor(first_factor("h.{}.attn.c_attn", layer, h, rank)));
    list.push_back(
        split_heads(second_factor("h.{}.attn.c_attn", layer, rank, query + 2 * model.kv_heads * model.head_dim), job));
    return;
  }
  const models::Latent& latent = *model.latent;
  const std::int64_t narrow = latent.query_rank + latent.key_rank + latent.rotary_dim;
  list.push_back(first_factor("h.{}.attn.latents", layer, h, rank));  // whole, as their matrix is
  list.push_back(second_factor("h.{}.attn.latents", layer, rank, narrow));
  const auto heads = [&](const char* target, std::int64_t from, std::int64_t width) {
    list.push_back(partial_over_tensor(first_factor(target, layer, from, rank)));
    list.push_back(split_columns(second_factor(target, layer, rank, width), job.plan.tensor));
  };
  heads("h.{}.attn.query_heads", latent.query_rank > 0 ? latent.query_rank : h, query);
  heads("h.{}.attn.key_heads", latent.key_rank, model.heads * (latent.plain_dim + latent.value_dim));
}

}  // namespace

// Where the target's columns are split, A is whole on every rank, where its rows are, B is: of such a factor's gradient
// each rank has a part.
std::vector<Parameter> adapter_parameters(const Job& job, int layer, bool mixture) {
  const Lora& lora = job.training.lora;
  if (!lora.used()) return {};
  const models::Model& model = job.model;
  const int tensor = job.plan.tensor;
  const std::int64_t h = model.hidden, rank = lora.rank;
  std::vector<Parameter> list;
  const auto by_rows = [&](const std::string& target, std::int64_t in) {
    list.push_back(split_rows(first_factor(target, layer, in, rank), tensor));
    list.push_back(partial_over_tensor(second_factor(target, layer, rank, h)));
  };
  if (lora.qkv) add_attention_adapters(list, job, layer);
  if (lora.projection) by_rows("h.{}.attn.c_proj", model.heads * model.value_dim());
  const std::int64_t ffn = mixture ? model.experts->shared_hidden : model.dense_hidden();
  const std::string mlp = mixture ? "h.{}.mlp.shared" : "h.{}.mlp";
  if (ffn > 0 && lora.fc1) {
    list.push_back(partial_over_tensor(first_factor(mlp + ".c_fc", layer, h, rank)));
    list.push_back(split_columns(second_factor(mlp + ".c_fc", layer, rank, fc_width_of(model, ffn)), tensor,
                                 gate_up_of(model, ffn)));
  }
  if (ffn > 0 && lora.fc2) by_rows(mlp + ".c_proj", ffn);
  return list;
}

std::vector<Parameter> expert_adapter_parameters(const Job& job, int layer) {
  const Lora& lora = job.training.lora;
  if (!lora.used()) return {};
  const models::Model& model = job.model;
  const std::int64_t h = model.hidden, ffn = model.ffn_hidden, rank = lora.rank;
  const std::string fc1 = "h.{}.mlp.experts.c_fc", fc2 = "h.{}.mlp.experts.c_proj";
  ExpertList list(job);
  if (lora.fc1) {
    list.replicated(first_factor(fc1, layer, h, rank));
    list.columns(second_factor(fc1, layer, rank, fc_width_of(model, ffn)), gate_up_of(model, ffn));
  }
  if (lora.fc2) {
    list.rows(first_factor(fc2, layer, ffn, rank));
    list.replicated(second_factor(fc2, layer, rank, h));
  }
  return list.take();
}

std::vector<Parameter> module_parameters(const Job& job, int layer) {
  const models::Model& model = job.model;
  std::vector<Parameter> list;
  for (const char* name : {"h.{}.mtp.embedding_norm", "h.{}.mtp.hidden_norm", "h.{}.mtp.norm"}) {
    add_norm(list, model, name, layer);
  }
  for (const char* name : {"h.{}.mtp.embedding.weight", "h.{}.mtp.hidden.weight"}) {
    list.push_back(matrix_parameter(name, layer, model.hidden, model.hidden, kInitStd));
  }
  return list;
}

std::vector<Parameter> head_parameters(const Job& job, bool chunk_has_embedding) {
  std::vector<Parameter> list;
  add_norm(list, job.model, "ln_f", -1);
  const std::int64_t extra = outside_extras(job.model, false);
  if (extra > 0) list.push_back(vector_parameter("extras.last.weight", -1, extra, 0));
  if (!job.model.tied_embeddings) list.push_back(vocabulary_matrix(job, "lm_head.weight"));
  if (job.model.embeds_at_end() && !chunk_has_embedding) {
    list.push_back(vocabulary_matrix(job, "wte.weight"));
    list.back().tied_copy = true;
  }
  return list;
}

std::optional<std::pair<std::int64_t, std::int64_t>> global_place(const Parameter& p, std::int64_t row,
                                                                  std::int64_t column, int tensor_rank,
                                                                  int tensor_ranks, int expert_rank) {
  tensor_rank = cut_rank(p, tensor_rank), tensor_ranks = cut_ranks(p, tensor_ranks);
  // An expert's matrix is placed by itself, then under those of the experts before it.
  const std::int64_t local_rows = p.local_rows / std::max<std::int64_t>(1, p.local_experts);
  const std::int64_t rows = p.rows / std::max<std::int64_t>(1, p.experts);
  const std::int64_t above = p.experts > 0 ? (expert_rank * p.local_experts + row / local_rows) * rows : 0;
  if (p.experts > 0) row %= local_rows;
  if (p.split == Split::kRows) {
    row += tensor_rank * local_rows;
    if (row >= rows) return std::nullopt;
  } else if (p.split == Split::kColumns) {
    if (p.sections.empty()) return std::pair{above + row, column + tensor_rank * p.local_columns};
    std::int64_t before = 0;
    for (std::size_t section = 0; section < p.sections.size(); ++section) {
      const std::int64_t part = local_section(p, section, tensor_ranks);
      const int holder = section > 0 ? tensor_rank / p.key_ranks : tensor_rank;
      if (column < part) return std::pair{above + row, before + holder * part + column};
      column -= part;
      before += p.sections[section];
    }
  }
  return std::pair{above + row, column};
}

std::string global_name(const Parameter& parameter, int chunk_first_layer) {
  if (parameter.layer < 0) return parameter.name;
  return fmt::format(fmt::runtime(parameter.name), chunk_first_layer + parameter.layer);
}

}  // namespace trivium::program
