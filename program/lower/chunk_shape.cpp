#include "program/lower/chunk_shape.h"

#include <algorithm>
#include <cmath>

#include "program/ir/expert_rows.h"
#include "program/lower/layout.h"

namespace trivium::program {
namespace {

// Rows that a rank sends where choices are even. With room for all of them none; with less, experts are full after a
// share of the tokens, in the order of the sample: with runs of tokens that share of the ranks has a row for each, and
// room for its part alone.
std::int64_t mean_spills(const models::Experts& experts, std::int64_t tokens, int tensor) {
  if (experts.capacity_factor >= 1) return 0;
  const double choices = experts.capacity_factor * static_cast<double>(experts.top_k);
  const double share = choices - std::floor(choices);
  return static_cast<std::int64_t>(share * (1 - share) * static_cast<double>(tokens) / tensor);
}

}  // namespace

// Of an MLP whose inner width on this rank is `ffn`.
static ChunkShape::Inner inner(std::int64_t ffn, const models::Model& model) {
  return {ffn, model.gated() ? 2 * ffn : ffn};
}

ChunkShape::ChunkShape(const Job& job) : layers_of(&job.model), documents(&job.training.documents) {
  const Plan& plan = job.plan;
  tensor = plan.tensor;
  transfer_parts = program::transfer_parts(job);
  sequence = job.training.sequence;
  context = plan.context;
  context_method = plan.context_method;
  context_heads = context > 1 ? plan.context_heads : 1;
  tokens = sequence * plan.micro_batch / context;
  sequence_parallel = plan.sequence_parallel;
  own_tokens = sequence_parallel ? tokens / tensor : tokens;
  set_heads(job.model);
  mlp = inner(job.model.dense_hidden() / tensor, job.model);
  if (job.model.experts) set_experts(job);
  set_types(job);
  set_kinds(job);
}

void ChunkShape::set_heads(const models::Model& model) {
  hidden = model.hidden;
  heads = static_cast<std::int32_t>(model.heads / tensor);
  kv_heads = static_cast<std::int32_t>(std::max<std::int64_t>(1, model.kv_heads / tensor));
  head_dim = static_cast<std::int32_t>(model.head_dim);
  value_dim = static_cast<std::int32_t>(model.value_dim());
  query = heads * model.head_dim;
  attended = heads * model.value_dim();
  qkv = query + kv_heads * (model.head_dim + model.value_dim());
  if (model.latent) {
    query_rank = model.latent->query_rank, key_rank = model.latent->key_rank, shared_key = model.latent->rotary_dim;
    up = heads * (model.latent->plain_dim + model.latent->value_dim);
  }
  const int parts = head_ranks();
  all_tokens = tokens * parts;
  part_heads = heads / parts;
  part_kv_heads = std::max(1, kv_heads / parts);
  part_attended = part_heads * model.value_dim();
  part_qkv = part_heads * model.head_dim + part_kv_heads * (model.head_dim + model.value_dim());
}

// After tokens and tensor.
void ChunkShape::set_experts(const Job& job) {
  const models::Model& model = job.model;
  models::Experts mixture = *model.experts;
  const ExpertLoad& load = job.training.expert_load;
  if (load.used()) mixture.imbalance = load.imbalance(mixture.count, job.plan.expert);
  const Plan& plan = job.plan;
  experts = mixture.count;
  top_k = mixture.top_k;
  dropless = mixture.dropless;
  correction_bias = mixture.correction_bias;
  scales_input = mixture.scales_input;
  expert = plan.expert;
  expert_split = expert_tensor_ranks(plan);
  splitting_experts = group_splitting_experts(plan);
  expert_mlp = inner(model.ffn_hidden / expert_split, model);
  shared_mlp = inner(mixture.shared_hidden / tensor, model);
  routes_own = expert_split < tensor && dropless && sequence_parallel && !model.parallel_block;
  routed_tokens = routes_own ? own_tokens : tokens;
  const int dealt = routes_own ? 1 : tensor;
  local_experts = experts / expert;
  capacity = expert_capacity(mixture, sequence);
  const ExpertRows rows{capacity, plan.micro_batch, context, tensor};
  own_rows = dropless ? expert * dropless_rows(mixture, routed_tokens, expert, dealt) : experts * rows.part();
  expert_rows = own_rows * expert_split;
  if (context > 1 && !dropless) {
    most_sent = std::min(tokens * top_k, experts * plan.micro_batch * rows.excess(sequence / context));
    most_received = std::min(own_rows, (context - 1) * most_sent);
    even_spills = std::min(most_sent, mean_spills(mixture, tokens, tensor));
  }
}

void ChunkShape::set_types(const Job& job) {
  const Plan& plan = job.plan;
  vocab = padded_vocabulary(job) / tensor;
  type = plan.precision;
  wide = is_half(type) ? DType::kFp32 : type;
  const StackTraits* stack = find_stack(plan.stack);
  gradient = is_half(type) && !(stack != nullptr && stack->keeps_half_gradients(type)) ? DType::kFp32 : type;
  lora = job.training.lora;
  fp8 = plan.fp8;
  keeps_casts = fp8 != Fp8::kNone && plan.zero_stage < 3;
}

void ChunkShape::set_kinds(const Job& job) {
  const models::Model& model = job.model;
  flash = job.plan.attention == Attention::kFlash;
  dropout = job.training.dropout > 0;
  bias = model.linear_bias;
  qkv_bias = model.qkv_bias;
  layer_norm = model.norm == models::Norm::kLayerNorm;
  rotary = model.positions == models::Positions::kRotary;
  learned_positions = model.positions == models::Positions::kLearned;
  alibi_heads = model.positions == models::Positions::kAlibi ? static_cast<int>(model.heads) : 0;
  embedding_norm = model.embedding_norm;
  parallel_block = model.parallel_block;
  shared_norm = model.shared_norm;
  head_norms = model.head_norms;
  branch_norms = model.branch_norms;
  attention_soft_cap = model.attention_soft_cap;
  logit_soft_cap = model.logit_soft_cap;
  logit_scale = model.logit_scale;
  embedding_scale = model.embedding_scale;
  if (model.mtp) mtp_share = model.mtp->loss_scale / static_cast<double>(model.mtp->depth);
  norm_epsilon = model.norm_epsilon;
  attention_scale = model.attention_scale;
  activation = static_cast<int>(model.activation);
  pairs = job.plan.overlap.expert && job.plan.expert > 1;
  collective_lane = job.plan.overlap.tensor ? Lane::kTensor : Lane::kCompute;
}

std::string ParameterBuffers::short_name(const Parameter& parameter) {
  return parameter.layer >= 0 ? parameter.name.substr(parameter.name.find("}.") + 2) : parameter.name;
}

void ParameterBuffers::add(const Parameter& parameter, int value, int gradient) {
  Entry entry;
  entry.value = value, entry.gradient = gradient;
  entries_[{parameter.layer, short_name(parameter)}] = entry;
}

void ParameterBuffers::add_cast(const Parameter& parameter, Cast cast) {
  entries_[{parameter.layer, short_name(parameter)}].cast = cast;
}

ParameterBuffers::Cast ParameterBuffers::cast(const std::string& name, int layer) const {
  return find(name, layer).cast;
}

void ParameterBuffers::add_histories(const Parameter& parameter, const Histories& histories) {
  entries_[{parameter.layer, short_name(parameter)}].histories = histories;
}

int ParameterBuffers::history(const std::string& name, int layer, Fp8Operand operand) const {
  return find(name, layer).histories[static_cast<std::size_t>(operand)];
}

ParameterBuffers::Entry ParameterBuffers::find(const std::string& name, int layer) const {
  const auto found = entries_.find({layer, name});
  return found != entries_.end() ? found->second : Entry{};
}

int ParameterBuffers::value(const std::string& name, int layer) const { return find(name, layer).value; }

int ParameterBuffers::gradient(const std::string& name, int layer) const { return find(name, layer).gradient; }

}  // namespace trivium::program
