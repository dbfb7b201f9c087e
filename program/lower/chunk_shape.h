// The numbers that every op of a chunk is built from, and the names of the buffers a layer keeps.
#pragma once

#include <array>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "program/lower/body_builder.h"

namespace trivium::program {

/// Local sizes of a chunk on one rank.
struct ChunkShape {
  explicit ChunkShape(const Job& job);

  std::int64_t tokens = 0;      ///< of a micro-batch, this context rank's
  std::int64_t own_tokens = 0;  ///< tokens / tensor with sequence parallel, else tokens
  std::int64_t hidden = 0;
  std::int64_t query = 0;     ///< local heads * dim
  std::int64_t attended = 0;  ///< local heads * value dim: what attention gives
  std::int64_t qkv = 0;       ///< local (heads + kv_heads) * dim + kv_heads * value dim
  /// Local inner width of an MLP, and that of its first matrix: ffn, or 2 ffn when gated.
  struct Inner {
    std::int64_t ffn = 0, fc = 0;
  };
  Inner mlp, expert_mlp, shared_mlp;  ///< dense layers; experts; what every token visits in addition (0: nothing)
  std::int64_t vocab = 0;             ///< local rows, padded
  std::int64_t sequence = 0;
  std::int32_t heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;  ///< local counts; of a head
  // Latent attention: widths of the latents, and of what all keys have in common; 0 without.
  std::int64_t query_rank = 0, key_rank = 0, shared_key = 0;
  bool latent() const { return key_rank > 0; }
  std::int64_t latents() const { return query_rank + key_rank + shared_key; }
  std::int64_t up = 0;        ///< local heads * (dim - shared_key + value dim)
  DType type = DType::kFp32;  ///< activations and parameters
  DType wide = DType::kFp32;  ///< statistics, logits: fp32 at least
  DType gradient = DType::kFp32;
  Fp8 fp8 = Fp8::kNone;      ///< recipe of the layers' products
  bool keeps_casts = false;  ///< weights in 8 bits live from a step's first forward on; else they are cast at each use
  Lora lora;                 ///< where it is used, all but adapters is frozen
  bool sequence_parallel = false;
  int tensor = 1;
  int transfer_parts = 1;  ///< in which tensor ranks send what a stage hands to the next
  int context = 1;
  ContextMethod context_method = ContextMethod::kRing;
  int context_heads = 1;  ///< of a ring: ranks that exchange heads before it and after
  // What attention sees: with all-to-all over heads the tokens of all ranks of it and a part of the local heads.
  std::int64_t all_tokens = 0, part_attended = 0, part_qkv = 0;
  std::int32_t part_heads = 0, part_kv_heads = 0;
  int head_ranks() const { return context_method == ContextMethod::kAllToAll ? context : context_heads; }
  int ring_ranks() const { return context / head_ranks(); }
  bool ring() const { return ring_ranks() > 1; }
  bool exchanges() const { return head_ranks() > 1; }
  bool flash = false;
  bool dropout = false;
  bool bias = false, qkv_bias = false, layer_norm = true, rotary = false, learned_positions = true;
  bool parallel_block = false, shared_norm = true;
  bool head_norms = false;  ///< with weights
  bool branch_norms = false;
  double norm_epsilon = 1e-5, attention_scale = 0;
  int alibi_heads = 0;  ///< of the model, where positions are ALiBi's
  bool embedding_norm = false;
  double attention_soft_cap = 0, logit_soft_cap = 0, logit_scale = 1, embedding_scale = 1;
  double mtp_share = 0;  ///< of the loss of a module of multi-token prediction in that of the model
  /// Of a layer of the chunk.
  models::LayerKind kind(int layer) const {
    return layer < layers ? layers_of->layer_kind(first_layer + layer) : layers_of->mtp_kind();
  }
  bool turns(int layer) const { return layers_of->turns(kind(layer)); }
  bool norms_heads(int layer) const { return layers_of->norms_heads(kind(layer)); }
  /// Layers of equal numbers keep buffers of the same sizes from their forward to their backward; below kLayouts.
  int layout(int layer) const { return (kind(layer).mixture ? 1 : 0) + (norms_heads(layer) ? 2 : 0); }
  static constexpr int kLayouts = 4;
  const models::Model* layers_of;  ///< the job's, which outlives this
  const Documents* documents;      ///< likewise
  std::int64_t first_layer = 0;    ///< the chunk's phase
  /// The chunk's; later ones belong to multi-token prediction.
  std::int64_t layers = std::numeric_limits<std::int64_t>::max();
  // Mixture of experts.
  std::int64_t experts = 0, local_experts = 0, top_k = 1;
  bool dropless = false, correction_bias = false, scales_input = false;
  std::int64_t capacity = 0;     ///< tokens of a sample that an expert accepts
  std::int64_t own_rows = 0;     ///< of all experts, that this rank sends to them
  std::int64_t expert_rows = 0;  ///< that this rank's experts compute: own_rows of every rank that splits them
  // Rows that find no room in the part of their token's context rank: what a rank sends and gets at most, and what it
  // sends where choices are even.
  std::int64_t most_sent = 0, most_received = 0, even_spills = 0;
  int expert = 1;        ///< ranks that share the experts
  int expert_split = 1;  ///< tensor ranks that split each: all, some neighbours or, where experts are whole, one
  Group splitting_experts = Group::kTensor;  ///< those tensor ranks
  /// Tensor ranks send the rows of their own tokens (with sequence parallelism), not a share of all tokens' rows.
  bool routes_own = false;
  std::int64_t routed_tokens = 0;
  bool pairs = false;  ///< exchanges with the experts overlap another pass: layers are cut where they wait for one
  int activation = 0;  ///< kActivation's k: 0 GELU (tanh), 1 ReLU, 2 SwiGLU, 3 GeGLU
  Lane collective_lane = Lane::kCompute;  ///< kTensor where tensor collectives overlap

 private:
  void set_heads(const models::Model& model);
  void set_experts(const Job& job);
  void set_types(const Job& job);
  void set_kinds(const Job& job);
};

/// What one layer keeps from its forward for its backward (buffer ids; kNoBuffer where absent). What is dropped in
/// between is a temporary of either body.
struct LayerKept {
  int input = kNoBuffer;  ///< (own_tokens, hidden): always in the frame
  int norm1 = kNoBuffer, stats1 = kNoBuffer;
  int projected = kNoBuffer, head_sigma = kNoBuffer;  ///< with head norms: qkv before them, 1/sigma of each head
  // Latent attention: the latents of all tokens, and normalised.
  int latents = kNoBuffer, query_latent = kNoBuffer, key_latent = kNoBuffer;
  int qkv = kNoBuffer, saved = kNoBuffer, attended = kNoBuffer;
  int attended_whole = kNoBuffer;  ///< with all-to-all over heads: of all tokens, a part of the heads; qkv likewise
  int middle = kNoBuffer;          ///< residual stream after attention
  int norm2 = kNoBuffer, stats2 = kNoBuffer;
  int fc = kNoBuffer, act = kNoBuffer;
  // With branch norms: what attention and MLP gave, summed over the tensor group, and the norms' statistics.
  int branch1 = kNoBuffer, branch2 = kNoBuffer, branch_stats1 = kNoBuffer, branch_stats2 = kNoBuffer;
  /// In 8 bits: what the gradients of matrices read; where absent they cast `norm1` and `norm2` again.
  struct Casts {
    int norm1 = kNoBuffer, attended = kNoBuffer, norm2 = kNoBuffer, act = kNoBuffer, dispatched = kNoBuffer;
  } casts;
  /// What adapters make of their inputs, x A: (T, rank), of experts' (rows, rank). `qkv`: with latent attention that of
  /// the latents, `queries` and `keys` those of what makes heads of them.
  struct Adapted {
    int qkv = kNoBuffer, projection = kNoBuffer, fc1 = kNoBuffer, fc2 = kNoBuffer;
    int queries = kNoBuffer, keys = kNoBuffer, shared_fc1 = kNoBuffer, shared_fc2 = kNoBuffer;
  } adapted;
  // Mixture layers: routing, rows that went into the experts and that came back, and the loss the balance adds to.
  int router = kNoBuffer, slots = kNoBuffer, dispatched = kNoBuffer, returned = kNoBuffer, loss = kNoBuffer;
  int spills = kNoBuffer;  ///< with context ranks: kSpill's table
  int counts = kNoBuffer;  ///< dropless: rows of this rank's experts, by the rank that sent them
  int shared_fc = kNoBuffer, shared_act = kNoBuffer;  ///< of the MLP that every token visits
  int scores_dropped = kNoBuffer;  ///< with dropout, unfused: mask, dropped scores (Korthikanti et al. 2022, §4.1)
  int mask1 = kNoBuffer, mask2 = kNoBuffer;  ///< with dropout: masks of the residual branches
};

/// All buffers of `kept`, in the order of its members.
std::vector<int*> buffers_of(LayerKept& kept);

/// Parameters and gradients of a layer (or of embedding and head), found by the end of their name.
class ParameterBuffers {
 public:
  void add(const Parameter& parameter, int value, int gradient);
  int value(const std::string& name, int layer = -1) const;  ///< kNoBuffer where the model has no such parameter
  int gradient(const std::string& name, int layer = -1) const;

  /// A weight in 8 bits, where it is kept: as its product reads it, and as its data gradient does.
  struct Cast {
    int forward = kNoBuffer, backward = kNoBuffer;
  };
  void add_cast(const Parameter& parameter, Cast cast);
  Cast cast(const std::string& name, int layer) const;

  /// fp8 delayed: where the history of each operand of the matrix's products begins, by Fp8Operand.
  using Histories = std::array<int, kFp8Operands>;
  void add_histories(const Parameter& parameter, const Histories& histories);
  int history(const std::string& name, int layer, Fp8Operand operand) const;

 private:
  struct Entry {
    int value = kNoBuffer, gradient = kNoBuffer;
    Cast cast;
    Histories histories{kNoBuffer, kNoBuffer, kNoBuffer};
  };
  static std::string short_name(const Parameter& parameter);
  Entry find(const std::string& name, int layer) const;
  std::map<std::pair<int, std::string>, Entry> entries_;
};

}  // namespace trivium::program
