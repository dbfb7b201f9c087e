// The ops of a transformer, forward and backward, as one rank of a tensor group runs them (Megatron-LM's split:
// Shoeybi et al. 2019, arXiv 1909.08053; sequence parallel: Korthikanti et al. 2022, arXiv 2205.05198).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "program/lower/chunk_shape.h"
#include "program/lower/offload.h"

namespace trivium::program {

/// Writes ops of one chunk template into the body that `builder` is building.
class LayerWriter {
 public:
  LayerWriter(BodyBuilder& builder, const ChunkShape& shape, const ParameterBuffers& parameters)
      : b_(builder), s_(shape), p_(parameters) {}

  /// Buffers that a layer keeps from its forward to its backward, in the frame; those of `dropped` modules are
  /// temporaries of the current body. `input` stays as it is.
  LayerKept keep(int layer, int input, ModuleSet dropped);
  /// All of them temporaries of the current body.
  LayerKept keep_nothing(int layer, int input);
  /// The same for another body: what is dropped is anew, in a backward (`casts`) with its casts to 8 bits.
  LayerKept keep_again(int layer, const LayerKept& kept, ModuleSet dropped, bool casts);

  /// What layers keep between their passes goes to these slots, which must outlive this.
  void offload_to(LayerSlots& slots) { slots_ = &slots; }
  /// While on, gradients of matrices are not written but kept for `write_weights`, and what they read is placed where
  /// it outlives the body (Space::kDeferred).
  void delay_weights(bool delay) { delaying_ = delay; }
  /// While on, forwards cast the weights that are kept in 8 bits before they read them.
  void cast_weights(bool cast) { casts_weights_ = cast; }
  /// Writes the gradients of a layer's matrices (-1: the head's) that were kept.
  void write_weights(int layer);
  /// Whether layer_backward leaves its `d` as it is: a kept gradient still reads it, and not what was made of it.
  bool keeps_gradients() const { return delaying_ && !s_.sequence_parallel && !s_.dropout && s_.fp8 == Fp8::kNone; }

  /// Before the first forward: what the embedding saves for its backward.
  void keep_embedding();
  void embedding_forward(int ids, int output);
  void embedding_backward(int ids, int d);
  /// The token embedding alone, and where its gradient goes.
  void look_up(int ids, int output, DropoutSite dropout);
  void look_up_backward(int ids, int d, int gradient, DropoutSite dropout);

  void layer_forward(int layer, const LayerKept& kept, int output, Pass pass);
  /// Makes what was dropped (recompute.cpp).
  void modules_again(int layer, const LayerKept& kept, ModuleSet dropped);
  /// `d`: gradient of the layer's output, changed in place; the gradient of its input is left in `d_input` (may be d,
  /// may be kept.input).
  void layer_backward(int layer, const LayerKept& kept, int d, int d_input);

  /// What the head keeps for its backward, or a module of multi-token prediction of its use of the output matrix.
  struct HeadKept {
    int input = kNoBuffer, norm = kNoBuffer, stats = kNoBuffer, logits = kNoBuffer, max = kNoBuffer, sums = kNoBuffer;
    int layer = -1;  ///< of the module
    int labels = kNoBuffer;
  };
  HeadKept keep_head(int input, int labels, int layer = -1);
  void head_forward(const HeadKept& kept, int loss);
  /// Leaves the gradient of the head's input in `d_input`. `d_norm`: the gradient of the norm's output from its other
  /// uses (own tokens; kNoBuffer: there are none).
  void head_backward(const HeadKept& kept, int d_input, int d_norm);

  /// What a module of multi-token prediction saves (models::MultiToken), in addition to its layer's saved activations.
  struct ModuleKept {
    int layer = 0;             ///< its number among the chunk's
    int tokens = kNoBuffer;    ///< that it reads the embeddings of
    int previous = kNoBuffer;  ///< the normed output before it (own_tokens, hidden)
    int embedded = kNoBuffer, embedding_norm = kNoBuffer, embedding_stats = kNoBuffer;
    int previous_norm = kNoBuffer, previous_stats = kNoBuffer;
    int input = kNoBuffer;  ///< of its layer
    HeadKept head;
  };
  /// `tokens`, `labels`: buffers of (T) tokens; negative ones are none.
  ModuleKept keep_module(int layer, int previous, int tokens, int labels);
  /// From `previous` to the input of the layer, and, after the layer, whose output is `head.input`, the loss.
  void module_forward(const ModuleKept& kept, const LayerKept& layer, int loss);
  /// From the gradient of its layer's input, which stays, to that of `previous`, which is returned (own tokens).
  int module_backward(const ModuleKept& kept, int d);

 private:
  /// Where what a layer keeps goes, module by module.
  struct Keeping {
    bool in_frame = true;
    ModuleSet dropped{};
    bool placed = false;  ///< what is in the frame is there already
    bool casts = true;    ///< dropped ones, too
    bool keeps(Module module) const { return in_frame && !dropped.has(module); }
  };
  /// y (T,out) = x (T,in) w
  struct Product {
    const char* parameter;
    std::int64_t out, in;
    int cast = kNoBuffer;  ///< with fp8: where x is kept in 8 bits for the weight's gradient
    bool biased = false;
    bool wide = false;        ///< never in 8 bits
    bool own_tokens = false;  ///< of this tensor rank alone, not those of its group
    int adapted = kNoBuffer;  ///< what its adapter makes of x (T,rank); kNoBuffer: it has none
    bool of_experts = false;  ///< a product of every expert with its rows
    int counts = kNoBuffer;   ///< of experts: how many rows each has (LayerKept::counts)
  };
  Product qkv_product(const LayerKept& kept) const;
  Product projection_product(const LayerKept& kept) const;
  // Adapters (adapters.cpp): y += scale (x A) B; of the backward what leaves dx whole, and what it returns later.
  void adapt(int x, const Product& product, int y, int layer, Pass pass);
  int adapt_backward(const Product& product, int dy, int dx, int layer);
  void adapter_gradients(int x, const Product& product, int dy, int d_adapted, int layer);
  /// y (m,out) = x (m,in) factor, or as the kind of product says; of a gradient `factor` is the other operand.
  struct FactorOperands {
    int x, factor, y;
    std::int64_t out, in;
  };
  Op& factor_product(const Product& product, OpKind kind, const FactorOperands& of, int layer, Pass pass);
  Op& scaled(Op& op) const;
  void keep_adapted(LayerKept& kept, int layer, const Keeping& keeping);
  std::int64_t tokens_of(const Product& product) const {
    return product.of_experts ? s_.expert_rows : product.own_tokens ? s_.own_tokens : s_.tokens;
  }
  /// dw (k,n) += x (T,k)^T dy (T,n)
  struct WeightGradient {
    int x, dy, weight, bias;
    std::int64_t m, n, k;
    int layer;
    bool transposed;
    Fp8 fp8 = Fp8::kNone;
  };
  void weight_gradient(const WeightGradient& gradient);
  void write(const WeightGradient& gradient);
  int hold(const std::string& name, DType type, std::int64_t elements);
  /// Called between a product's data gradient and its weight gradient, so that the collective it posts can overlap the
  /// latter where the plan asks for it.
  using Between = std::function<void()>;

  // The two halves of a layer: from what a norm gave (all tokens) to sums that are partial over the tensor group, and
  // back. The backward gives `between` the gradient of what was read, partial over the tensor group; `read`: what a
  // norm gave, or kNoBuffer to gather it again.
  int attention_branch(int read, const LayerKept& kept, int layer, Pass pass);
  void attention_branch_backward(const LayerKept& kept, int read, int d_branch, int layer,
                                 const std::function<void(int)>& between);
  int mlp_branch(int read, const LayerKept& kept, int layer, Pass pass);
  void mlp_branch_backward(const LayerKept& kept, int read, int d_branch, int layer,
                           const std::function<void(int)>& between);
  int mlp_sums(int norm2, const LayerKept& kept, int layer, Pass pass);
  int mlp_sums_backward(const LayerKept& kept, int d_sums, int layer);
  int attend(int qkv, const LayerKept& kept, int layer, Pass pass);
  int d_projection(const LayerKept& kept, int d_branch, int layer);
  void d_heads(const LayerKept& kept, int d_attended, int d_qkv, int layer);
  /// An MLP that is no mixture, with what is kept of it.
  struct Mlp {
    Product up, down;
    int fc, act;
    const char *name, *input;
    int branch = kNoBuffer;  ///< where a norm reads its sums
  };
  Mlp dense_mlp(const LayerKept& kept) const;
  Mlp shared_mlp(const LayerKept& kept) const;
  int plain_mlp(const Mlp& mlp, int read, int layer, Pass pass);
  /// What an MLP reads, and how it is gathered again where it is kNoBuffer.
  struct Read {
    int buffer;
    std::function<int()> gather;
  };
  void plain_mlp_backward(const Mlp& mlp, const Read& read, int d_branch, int layer,
                          const std::function<void(int)>& between);
  // Latent attention (latent.cpp): from a norm's own tokens, and back to the whole gradient of these.
  int latent_branch(int norm1, const LayerKept& kept, int layer, Pass pass);
  int latent_branch_backward(const LayerKept& kept, int d_branch, int layer);
  void keep_latents(LayerKept& kept, int layer, const Keeping& keeping);
  int make_heads(int norm1, const LayerKept& kept, int layer, Pass pass);
  Op& latent_op(Op& op, std::int64_t n, int layer);
  Product latents_product(const LayerKept& kept) const;
  Product query_heads_product(const LayerKept& kept) const;
  Product key_heads_product(const LayerKept& kept) const;
  Op& token_collective(OpKind kind, int from, int to, std::int64_t width, int layer, Pass pass);
  /// `beside`: the MLP that every token visits, which overlaps with an exchange where passes run in pairs.
  int mixture_branch(int read, const LayerKept& kept, int layer, Pass pass, const std::function<void()>& beside = {});
  void count_rows(const LayerKept& kept, int layer, Pass pass);
  std::int64_t expert_parts() const {
    return s_.local_experts == 1 && !s_.dropless ? 1 : std::int64_t{s_.expert} * s_.expert_split;
  }
  void mixture_branch_backward(const LayerKept& kept, int read, int d_branch, int layer,
                               const std::function<void(int)>& between, const std::function<void()>& beside = {});
  void exchange_rows(int from, int to, const char* name, int layer, Pass pass);
  void cut(const char* name, int layer);
  Op& row_collective(OpKind kind, Group group, int from, int to, int layer, Pass pass);
  int row_scratch(const std::string& name, std::int64_t rows, int layer);
  int rows_to_experts(int own, int to, int layer, Pass pass, const std::function<void()>& beside);
  int rows_from_experts(int partial, int to, int layer, Pass pass, const std::function<void()>& between = {});
  Op& logits_collective(Group group, int from, int to, int layer, Pass pass);
  int list_logits(int own, int layer, Pass pass);
  Op& own_routing_op(Op& op, std::int64_t n, int layer);
  int combining_gates(const LayerKept& kept) const { return s_.scales_input ? kNoBuffer : kept.router; }
  Op& spill_op(Op& op, const LayerKept& kept, int layer);
  void receive_spills(int spilled, int rows, const LayerKept& kept, int layer, Pass pass);
  int return_spills(int rows, const std::string& name, const LayerKept& kept, int layer, Pass pass);
  Product router_product() const;
  Product experts_up(const LayerKept& kept) const;
  Product experts_down(const LayerKept& kept) const;
  /// `once`: on the first tensor rank alone.
  void expert_bias(const char* parameter, int rows, int counts, std::int64_t width, bool leaves, int layer, Pass pass);
  void expert_bias_backward(const char* parameter, int d, int counts, std::int64_t width, bool leaves, int layer);
  Op& routing_op(Op& op, std::int64_t n, int layer);
  Op& expert_op(Op& op, std::int64_t out, std::int64_t in, int layer);
  void parallel_forward(int layer, const LayerKept& kept, int output, Pass pass);
  void parallel_backward(int layer, const LayerKept& kept, int d, int d_input);
  int branch_backward(int d, int mask, const char* first, const char* second, DropoutSite site, int layer);
  DropoutSite dropout_at(DropoutSite site) const { return s_.dropout ? site : DropoutSite::kNone; }
  void add(int from, int to, int layer, Pass pass);
  int gradient_of(const char* name, std::int64_t elements, int layer);
  int late_gradient_of(const char* name, std::int64_t elements, int layer);  // read by weight gradients

  LayerKept keep_as(int layer, int input, const Keeping& keeping);
  void keep_attention(LayerKept& kept, int layer, const Keeping& keeping);
  void keep_mixture(LayerKept& kept, int layer, const Keeping& keeping);
  bool keeps_mlp(int layer, const Keeping& keeping) const;
  bool keeps_activation(int layer, const Keeping& keeping) const;
  struct Kept {
    int layer;
    const char* name;
    DType type;
    std::int64_t elements;
    bool read_late;  ///< by gradients of matrices
  };
  int make_kept(const Kept& one, bool in_frame, bool placed);
  void mlp_again(int layer, LayerKept kept);
  int norm_of_mlp(const LayerKept& kept) const;
  void activate_experts(int from, int activated, int layer, Pass pass);
  int place_kept(int layer, const std::string& name, DType type, std::int64_t elements);
  int reduce_tokens(int partial, const char* name, int layer, Pass pass, int own = kNoBuffer);
  int branch_buffer(int kept, const char* name, int layer);
  int normed_branch(int branch, const char* parameter, int stats, int layer, Pass pass);
  int normed_branch_backward(int branch, const char* parameter, int stats, int d, int layer);
  void place_heads(OpKind turning, int qkv, int layer, Pass pass);
  int gather_tokens(int own, const char* name, int layer, Pass pass);
  void all_reduce(int buffer, Reduction reduction, int layer, Pass pass);
  void matmul(int x, const Product& product, int y, int layer, Pass pass);
  void matmul_backward(int x, const Product& product, int dy, int dx, int layer, const Between& between);
  void expert_matmul(int x, const Product& product, int y, int layer, Pass pass);
  /// What the weight's gradient reads: what it is given, or in 8 bits; those of an adapter what it is given.
  struct GradientOperands {
    int x, dy, d_adapted;
  };
  GradientOperands expert_dgrad(int x, const Product& product, int dy, int dx, int layer);
  void expert_wgrad(const GradientOperands& operands, const Product& product, int layer);
  bool in_8_bits(const Product& product) const { return s_.fp8 != Fp8::kNone && !product.wide; }

  // Casts to 8 bits (casts.cpp).
  /// Rows of a buffer, in runs that share no scale.
  struct Rows {
    std::int64_t rows, columns, runs = 1;
    Fp8Operand operand = Fp8Operand::kInput;
  };
  struct CastTo {
    int along_rows = kNoBuffer, along_columns = kNoBuffer, dbias = kNoBuffer;
  };
  void cast(int x, const Product& product, const Rows& rows, const CastTo& to, int layer, Pass pass);
  int cast_buffer(const std::string& name, const Rows& rows, bool along_rows, bool late, int layer);
  int cast_input(int x, const Product& product, const Rows& rows, int layer, Pass pass);
  CastTo cast_gradient(int dy, const Product& product, const Rows& rows, int dbias, int layer);
  int cast_again(int x, const Product& product, const Rows& rows, int layer);
  int cast_weight(const Product& product, std::int64_t experts, bool backward, int layer, Pass pass);
  void keep_casts(LayerKept& kept, int layer, const Keeping& keeping);
  std::int64_t expert_runs() const;
  int mlp_cast(const LayerKept& kept) const;
  int kept_or_temporary(int kept, const char* name, std::int64_t elements, int layer);
  /// Whether a matrix that is never in 8 bits reads what the norm gave: a router, the head.
  bool reads_wide(int layer) const { return layer < 0 || s_.kind(layer).mixture; }
  void norm(int x, const char* parameter, int y, int stats, int layer, Pass pass);
  void norm_backward(int x, const char* parameter, int stats, int dy, int dskip, int dx, int layer);
  void attention(int qkv, const LayerKept& kept, int layer, Pass pass);
  void attention_core(const LayerKept& kept, int layer, Pass pass);
  void attention_backward(const LayerKept& kept, int d_attended, int d_qkv, int layer);
  Op& attention_op(Op& op, int layer);
  void look_back(Op& op, int layer) const;

  Op& context_op(Op& op, std::int64_t m, std::int64_t n, int layer);
  int ring_shift(int from, const char* name, int step, int layer, Pass pass);
  int split_kv(int qkv, int layer, Pass pass);
  void ring_attention(const LayerKept& kept, int layer, Pass pass);
  void ring_attention_backward(const LayerKept& kept, int attended, int d_attended, int d_qkv, int layer);
  int context_all_to_all(int packed, int layer, Pass pass);
  void of_values(Op& op) const;
  Op& exchange_op(Op& op, std::int64_t m, std::int64_t n, int layer);
  Op& ring_op(Op& op, std::int64_t n, int layer);
  Group context_group(Group nested) const { return s_.ring() && s_.exchanges() ? nested : Group::kContext; }
  void tokens_to_heads(int local, int whole, bool with_keys, int layer, Pass pass);
  void heads_to_tokens(int whole, int local, bool with_keys, int layer, Pass pass);

  int head_weight() const;
  static const char* head_norm(const HeadKept& kept);
  int end_embedding_gradient() const;
  Product module_product(const char* parameter) const;
  void of_logits(Op& op);
  Op& rows(Op& op, std::int64_t m, std::int64_t n, int layer);  // fills dims of a token-wise op
  Op& of_heads(Op& op, std::int64_t n, int layer);              // and of one that sees heads of all own tokens

  BodyBuilder& b_;
  const ChunkShape& s_;
  const ParameterBuffers& p_;
  LayerSlots* slots_ = nullptr;
  void embed(int ids, int output);
  int embedded_ = kNoBuffer, embedded_stats_ = kNoBuffer;
  bool delaying_ = false, casts_weights_ = false;
  std::vector<WeightGradient> delayed_;
};

}  // namespace trivium::program
