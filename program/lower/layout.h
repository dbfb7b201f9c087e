// Which layers a chunk holds, and which parameters, as this rank sees them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "program/ir/program.h"

namespace trivium::program {

/// Layers of every chunk in model order (pipeline * virtual_stages entries). The plan's own where given; else even, the
/// remainder spread over the middle (the ends hold embedding and head); stacks that balance the embedding and the head
/// as one layer each fill chunks that way (BLOOM: 70 layers + 2 over 12 stages).
std::vector<int> chunk_layers(const Job& job);
std::vector<int> chunk_layers(std::int64_t layers, const Plan& plan);

/// Vocabulary rows with padding: a multiple of tensor times the stack's own multiple.
std::int64_t padded_vocabulary(const Job& job);

/// In how many parts the tensor ranks send what a stage hands to the next, each its own (scatter-gather: Narayanan et
/// al. 2021, arXiv 2104.04473, section 4.1): `tensor` where plan or stack do so and tensor ranks hold the same
/// activations, 1 with sequence parallelism, where each holds its own tokens. A stack does so where `tensor` divides
/// the elements.
int transfer_parts(const Job& job);

/// Neighbouring tensor ranks that hold the same key heads: 1, or with fewer key heads than ranks tensor / kv_heads.
int key_ranks(const Job& job);

/// The tensor ranks that split each expert among them: all, or as many neighbours.
Group group_splitting_experts(const Plan& plan);

/// Columns of a block of `p.sections` that one of the ranks holds that the parameter is cut over.
std::int64_t local_section(const Parameter& p, std::size_t section, int tensor_ranks);

/// Parameters of one part of a chunk, in storage order: those that are replicated over the tensor group first.
/// `layer`: number within the chunk. Offsets are not set.
std::vector<Parameter> embedding_parameters(const Job& job);
std::vector<Parameter> layer_parameters(const Job& job, int layer, bool mixture = false);
/// Matrices of a mixture layer's experts, the part of one rank; the router is among the layer's parameters.
std::vector<Parameter> expert_parameters(const Job& job, int layer);
/// What a module of multi-token prediction has in addition to its layer, `layer` of the chunk.
std::vector<Parameter> module_parameters(const Job& job, int layer);
/// Adapters of a layer's targets ("h.{}.attn.c_attn.lora_a", (in, rank), and "lora_b", (rank, out)); empty without
/// LoRA.
std::vector<Parameter> adapter_parameters(const Job& job, int layer, bool mixture);
/// Those of a mixture layer's experts, one of each for every expert, the part of one rank; likewise.
std::vector<Parameter> expert_adapter_parameters(const Job& job, int layer);
inline bool is_adapter(std::string_view name) { return name.ends_with(".lora_a") || name.ends_with(".lora_b"); }
std::vector<Parameter> head_parameters(const Job& job, bool chunk_has_embedding);

/// Tokens of a sample that one expert accepts: the even share times the capacity factor, rounded up, the sample at
/// most.
std::int64_t expert_capacity(const models::Experts& experts, std::int64_t sequence);

/// Rows that a tensor rank of `tensor` has room for to send to one of the `expert` ranks that share dropless experts:
/// the even share of the choices of `tokens` tokens times the imbalance, never more than there may be, rounded up to a
/// multiple of the experts there.
std::int64_t dropless_rows(const models::Experts& experts, std::int64_t tokens, int expert, int tensor);

/// Global (row, column) of a local element of the parameter on tensor rank `tensor_rank` of `tensor_ranks` and on the
/// expert rank `expert_rank`; empty where the element is padding of the vocabulary.
std::optional<std::pair<std::int64_t, std::int64_t>> global_place(const Parameter& parameter, std::int64_t local_row,
                                                                  std::int64_t local_column, int tensor_rank,
                                                                  int tensor_ranks, int expert_rank = 0);

/// The parameter's global name: its pattern with the number of the layer in the model.
std::string global_name(const Parameter& parameter, int chunk_first_layer);

}  // namespace trivium::program
