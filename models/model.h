// The shape of a GPT: what is trained, without a word on how.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trivium::models {

enum class Norm { kLayerNorm, kRmsNorm };
enum class Positions {
  kLearned,
  kRotary,
  kNone,  ///< no parameters and no rotation (a relative bias that is not computed here)
  kAlibi  ///< every head lowers scores by its slope times the distance of the key (Press et al. 2022, arXiv 2108.12409)
};
/// kGelu and kGeglu by the tanh form, kGeluErf exact. kSwiglu, kGeglu and kClampedSwiglu (gpt-oss) are gated: three
/// matrices in the MLP.
enum class Activation { kGelu, kRelu, kSwiglu, kGeglu, kGeluErf, kSquaredRelu, kClampedSwiglu };
constexpr bool is_gated(Activation activation) {
  return activation == Activation::kSwiglu || activation == Activation::kGeglu ||
         activation == Activation::kClampedSwiglu;
}
/// kClampedSwiglu: gate s(1.702 gate) (up + 1), the gate cut above 7, up beyond 7 either way (OpenAI's release, 2025).
inline constexpr double kClampedSlope = 1.702, kClampedLimit = 7;

/// How rotary frequencies are changed for sequences that are longer than those first trained on.
enum class RotaryScaling {
  kNone,
  kLinear,  ///< all divided by `factor` (Chen et al. 2023, arXiv 2306.15595)
  kLlama3,  ///< slow ones divided by `factor`, fast ones kept, a ramp between (Llama 3.1's release)
  kYarn     ///< the same by other bounds, and amplitudes raised (Peng et al. 2023, arXiv 2309.00071, §3.2 to 3.4)
};

/// Rotary positions (Su et al. 2021, arXiv 2104.09864): pair i of a head's n turning components turns by
/// position x theta^(-2i/n), before scaling.
struct Rotary {
  double theta = 10000;
  double share = 1;  ///< of a head's components, its first ones, that turn
  RotaryScaling scaling = RotaryScaling::kNone;
  double factor = 1;
  std::int64_t original_sequence = 0;  ///< that was trained on before; kLlama3, kYarn
  /// Turns within `original_sequence` below which a frequency is slow and above which it is fast; kLlama3, kYarn.
  double slow_turns = 1, fast_turns = 4;
  double amplitude = 1;     ///< kYarn: factor on sines and cosines
  bool whole_pairs = true;  ///< kYarn: the ramp's ends are rounded to pairs
  bool operator==(const Rotary&) const = default;
};

/// What a router makes of an expert's logit: its share of the softmax over all, or its own sigmoid (DeepSeek-V3).
enum class Scores { kSoftmax, kSigmoid };

/// Mixture of experts in the MLP (Switch, Mixtral, DeepSeek).
struct Experts {
  std::int64_t count = 0;         ///< experts per mixture layer
  std::int64_t top_k = 1;         ///< experts a token is sent to
  std::int64_t every = 1;         ///< every how many layers the MLP is a mixture (1: all)
  double capacity_factor = 1.25;  ///< tokens an expert accepts, over the even share
  double balance_loss = 0.01;     ///< weight of every mixture layer's balance loss in the loss that is trained
  /// No token is dropped: `capacity_factor` is not read, and rows of an expert are as many as chose it.
  bool dropless = false;
  /// Dropless experts that are spread over ranks: rows that one rank may send to another, over the even share. They are
  /// priced, and have room; experts that lie on one rank need none.
  double imbalance = 1;
  Scores scores = Scores::kSoftmax;
  bool correction_bias = false;  ///< added to the scores by which experts are chosen, not to those that weigh them
  bool scales_input = false;     ///< weights multiply what an expert reads, not what it gives (Llama 4)
  bool normalised = true;        ///< weights of several chosen experts add up to 1, before `scale`
  double scale = 1;              ///< factor on what the chosen experts add
  /// Experts are chosen among those of the `top_groups` best of `groups` equal runs of them; a group is worth the sum
  /// of its `group_best` best scores (DeepSeek-V2: 1, arXiv 2405.04434, section 2.2.2; V3: 2).
  std::int64_t groups = 1, top_groups = 1, group_best = 1;
  std::int64_t shared_hidden = 0;  ///< inner width of the MLP that every token visits too; 0: none
  std::int64_t dense_layers = 0;   ///< first layers whose MLP is no mixture; only where `every` is 1
  std::int64_t dense_hidden = 0;   ///< inner width of MLPs that are no mixture; 0: that of an expert
  /// Layers whose MLP is a mixture, in order, where neither `every` nor `dense_layers` tells them; else empty.
  std::vector<std::int64_t> mixture_layers{};

  bool operator==(const Experts&) const = default;
};

/// Attention that looks back a window only (Beltagy et al. 2020, arXiv 2004.05150; Mistral 7B, arXiv 2310.06825).
struct Window {
  std::int64_t keys = 0;           ///< that a query sees at most, its own included
  std::int64_t first_layer = 0;    ///< layers before this one see all keys (Qwen 2's max_window_layers)
  std::int64_t full_every = 0;     ///< every how many layers one sees all keys, the last of so many; 0: none does
  std::optional<Rotary> rotary{};  ///< of layers with windows, where it is not the model's (Gemma 3)
  /// Windows do not slide but are consecutive: a query sees the keys before it in its own (Llama 4's chunks).
  bool chunked = false;
  bool plain_full = false;  ///< heads of layers that see all keys do not turn (Llama 4's NoPE)
  /// Layers that see all keys, in order, where neither `first_layer` nor `full_every` tells them; else empty.
  std::vector<std::int64_t> full_layers{};

  bool operator==(const Window&) const = default;
};

/// Queries grow with their position in layers whose heads do not turn, so that attention over many keys stays sharp
/// (Nakanishi 2025, arXiv 2501.19399; Llama 4): times 1 + slope log(1 + floor((position + 1) / run)).
struct Temperature {
  double slope = 0;
  std::int64_t run = 0;  ///< tokens after which it changes

  bool operator==(const Temperature&) const = default;
};

/// Multi-head latent attention (DeepSeek-V2: arXiv 2405.04434, section 2.1): queries, and keys with values, pass
/// through a narrow normalised latent; a part of every key that turns with its position is shared by all heads.
struct Latent {
  std::int64_t query_rank = 0;  ///< width of the queries' latent; 0: queries are made of the hidden state
  std::int64_t key_rank = 0;    ///< of that of keys and values
  std::int64_t plain_dim = 0;   ///< components of a query or key head that do not turn
  std::int64_t rotary_dim = 0;  ///< and those that do
  std::int64_t value_dim = 0;   ///< components of a value head

  bool operator==(const Latent&) const = default;
};

/// Multi-token prediction as DeepSeek-V3 trains it (arXiv 2412.19437, section 2.2). Module k reads, of every token, the
/// normed output of the module before it (the first one: of the last layer) and the embedding of the token k further
/// on. Each is normed and meets an h x h matrix, halves of one of 2h x h; their sum passes a layer like the model's
/// last, a norm, and the model's own output matrix, which predicts the token k + 1 further on.
struct MultiToken {
  std::int64_t depth = 1;  ///< modules
  /// lambda: the mean of the modules' losses, each a sum over the tokens that have such a target over all tokens of the
  /// step (eq. 24 and 25), is added to the model's loss times this. 0.1: Megatron-Core's; DeepSeek-V3: 0.3, later 0.1.
  double loss_scale = 0.1;

  bool operator==(const MultiToken&) const = default;
};

/// What a family computes beyond the members of Model: planning counts its parameters and keeps them in memory, as
/// vectors that every tensor rank has; its work of a few operations a component is not priced, and no backend runs it.
struct Extra {
  enum class Part { kEmbedding, kAttention, kMlp, kNorms, kHead };
  enum class Layers { kAll, kMixture, kDense, kWindowed, kFull, kNone };  ///< kNone: once, outside of layers
  std::string name;                                                       ///< what it is: "gate of the shared expert"
  Part part = Part::kNorms;
  Layers layers = Layers::kAll;
  std::int64_t parameters = 0;  ///< in each such layer, or once

  bool operator==(const Extra&) const = default;
};

/// What tells a layer from others of its model: layers of equal kinds have the same parameters and compute the same.
struct LayerKind {
  bool mixture = false;     ///< its MLP is a mixture of experts
  std::int64_t window = 0;  ///< keys that a query sees at most, its own included; 0: all before it

  bool operator==(const LayerKind&) const = default;
};

/// Whether layers of this kind have it.
bool has(const Extra& extra, const LayerKind& kind);

/// A decoder-only transformer. Invariant after `load_model`: every number is positive, `heads % kv_heads == 0`.
struct Model {
  std::string name;
  std::string source;  ///< where its numbers were published
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;    ///< = heads: multi-head · 1: multi-query · between: grouped-query
  std::int64_t head_dim = 0;    ///< by default hidden / heads
  std::int64_t ffn_hidden = 0;  ///< by default 4 hidden
  std::int64_t vocab = 0;
  std::int64_t max_sequence = 0;
  Norm norm = Norm::kLayerNorm;
  Positions positions = Positions::kLearned;
  Rotary rotary;  ///< where positions are rotary
  Activation activation = Activation::kGelu;
  double norm_epsilon = 1e-5;
  double attention_soft_cap = 0;  ///< c: scores x become c tanh(x / c) before the softmax (Gemma 2); 0: they stay
  double logit_soft_cap = 0;      ///< the same of logits before the loss
  double logit_scale = 1;         ///< factor on logits, before their cap (Grok-1)
  double embedding_scale = 1;     ///< factor on looked-up tokens (Gemma: sqrt(hidden))
  bool embedding_norm = false;    ///< the looked-up tokens are normalised before the first layer (BLOOM)
  double attention_scale = 0;     ///< factor on scores before the softmax; 0: 1 / sqrt(head_dim)
  bool linear_bias = true;        ///< biases in attention output and MLP; in mixtures of the router and every expert
  bool qkv_bias = true;
  bool tied_embeddings = true;    ///< the logits use the token embedding
  bool parallel_block = false;    ///< attention and MLP read the same norm (GPT-J, Falcon, PaLM): one norm per layer
  bool head_norms = false;        ///< every query and key head is RMS-normalised before its positions (QK norm: Qwen 3)
  bool plain_head_norms = false;  ///< the same without weights, in layers whose heads turn alone (Llama 4's L2 norm)
  bool attention_sinks =
      false;                  ///< a number for every query head takes part in its softmax and in nothing else (gpt-oss)
  bool plain_norms = false;   ///< norms of layers and the last one have no weights (OLMo); planned, not run
  bool branch_norms = false;  ///< what attention and MLP give is normalised before it is added (Gemma): two norms more
  bool shared_norm = true;    ///< false: a parallel block has a norm for each of the two (GPT-NeoX, Falcon 40B)
  std::optional<Window> window;
  std::optional<Temperature> temperature;
  std::optional<Experts> experts;
  std::optional<MultiToken> mtp;  ///< modules of multi-token prediction that are trained
  std::vector<Extra> extras;      ///< what is planned and not run
  std::optional<Latent> latent;   ///< head_dim is then that of queries and keys, and every head has a key of its own

  bool operator==(const Model&) const = default;
  bool gated() const { return is_gated(activation); }
  /// Components of a head that turn with its position.
  std::int64_t rotary_width() const;
  /// Norms in one layer, the final norm of the model not counted.
  std::int64_t norms_per_layer() const { return parallel_block && shared_norm ? 1 : branch_norms ? 4 : 2; }
  /// Of a layer, counted from 0; the pattern goes on beyond the last one.
  LayerKind layer_kind(std::int64_t layer) const;
  /// Inner width of an MLP that is no mixture.
  std::int64_t dense_hidden() const {
    return experts && experts->dense_hidden > 0 ? experts->dense_hidden : ffn_hidden;
  }
  /// Modules of multi-token prediction, and what their layers are like.
  int mtp_depth() const { return mtp ? static_cast<int>(mtp->depth) : 0; }
  LayerKind mtp_kind() const { return layer_kind(layers - 1); }
  /// Whether the end of the model reads the embedding, too: for its logits, or for tokens further on.
  bool embeds_at_end() const { return tied_embeddings || mtp; }
  /// Parameters of the extras that a layer of this kind has.
  std::int64_t extra_parameters(const LayerKind& kind) const;
  std::int64_t value_dim() const { return latent ? latent->value_dim : head_dim; }
  /// Whether heads of such a layer turn with their positions, and whether they are normalised.
  bool turns(const LayerKind& kind) const {
    return positions == Positions::kRotary && !(window && window->plain_full && kind.window == 0);
  }
  bool norms_heads(const LayerKind& kind) const { return head_norms || (plain_head_norms && turns(kind)); }
};

/// What of the model is planned and not run, in words and in the order in which it has it; empty: a backend may run it.
std::vector<std::string> not_run(const Model& model);

/// A model has no more kinds of layers than this (two of attention, two of MLPs).
inline constexpr std::size_t kMostLayerKinds = 4;

/// Layers of one kind, of which the first is `first`.
struct LayersOfKind {
  LayerKind kind;
  std::int64_t first = 0, count = 0;
};
/// The kinds of a model's layers, in the order in which they first appear.
std::vector<LayersOfKind> layer_kinds(const Model& model);
/// Keys that a query sees in the mean under a causal mask, for long sequences: s / 2, and with a window w (0: none)
/// below s  w - w^2 / (2 s), the area of the band; of chunked windows w / 2, the area of the triangles along the
/// diagonal (less where the last is cut off).
double keys_seen(std::int64_t sequence, std::int64_t window, bool chunked = false);
/// The first layer from which on `count` layers are of the kinds of those from `layer` on.
std::int64_t first_alike(const Model& model, std::int64_t layer, std::int64_t count);

/// Parameters by part. `total` is the exact count of trained numbers.
struct ParameterCount {
  std::int64_t token_embedding = 0;     ///< vocab x hidden
  std::int64_t position_embedding = 0;  ///< max_sequence x hidden where learned
  std::int64_t attention = 0;           ///< all layers
  std::int64_t mlp = 0;                 ///< all layers, all experts, routers
  std::int64_t norms = 0;               ///< all layers and the final one
  std::int64_t head = 0;                ///< untied output matrix
  std::int64_t mtp = 0;                 ///< modules of multi-token prediction, without embedding and output matrix
  std::int64_t total = 0;
  std::int64_t active = 0;  ///< used by one token: top_k experts instead of all
};
/// Exact while `model` keeps its invariant; `load_model` refuses models whose counts leave 64 bits.
ParameterCount count_parameters(const Model& model);

/// Floating-point operations to train on one token (forward + backward, multiply and add counted apart).
/// `model_flops`: what the mathematics asks for (MFU). The hardware figures add what is computed again (HFU).
/// For a GPT-2 block these are exactly the forms of Narayanan et al. 2021 (arXiv 2104.04473, eq. 3) and Korthikanti et
/// al. 2022 (arXiv 2205.05198, appendix A): 72 l h^2 (1 + s/(6h) + V/(12 l h)) per token, full causal square counted.
/// With a = heads x head_dim, one token and one layer ask for 12 s a in the attention core (scores and weighted values,
/// forward and backward). A layer with a window of w < s keys counts its band as the square is counted, twice what the
/// mask leaves: 12 a w (2 - w / s). Logits count whether tied or not, an embedding lookup is free, a mixture counts its
/// router and top_k experts, and what every token visits. A module of multi-token prediction counts its projection, its
/// layer and logits of its own. Not counted: norms, softmax, activations, biases, tokens
/// beyond an expert's capacity.
struct FlopsPerToken {
  double model = 0;          ///< no recomputation
  double hardware_full = 0;  ///< full recomputation of every layer: one more forward of the layers
  /// The attention core recomputed. As published the core counts twice (s/(3h) for s/(6h)), though one more forward of
  /// it asks for a third of that; kept so that published HFU is reproduced.
  double hardware_selective = 0;
};
/// Of a token's forward through all layers: what recomputation of a module adds. The mixture has its router, top_k
/// experts and shared ones; `latent_heads`: what makes heads of latents.
struct ForwardFlops {
  double core = 0, mlp = 0, mixture = 0, shared = 0, latent_heads = 0;
};
ForwardFlops module_flops(const Model& model, std::int64_t sequence);

/// `sequence`: tokens in one sample, s above.
FlopsPerToken flops_per_token(const Model& model, std::int64_t sequence);

/// By how much (radians) a position turns every pair of a head: component i with component i + rotary_width() / 2.
/// Empty where positions are not rotary.
std::vector<double> rotary_frequencies(const Model& model);
/// The same as another rotary has it.
std::vector<double> rotary_frequencies(const Model& model, const Rotary& rotary);

}  // namespace trivium::models
