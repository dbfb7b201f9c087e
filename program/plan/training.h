// What is asked of a training: lengths, batch, optimizer. How it is split is the Plan's business.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace trivium::program {

/// What steps the matrices of layers; all else is stepped by AdamW.
enum class Update : std::uint8_t {
  kAdamW,
  kMuon  ///< momentum with its singular values made alike (Jordan et al. 2024; Liu et al. 2025, arXiv 2502.16982)
};
std::string_view name_of(Update value);  ///< "adamw" "muon"

/// AdamW with decoupled weight decay on matrices only, or Muon for matrices of layers; global-norm clipping, linear
/// warm-up and cosine decay.
struct Optimizer {
  Update kind = Update::kAdamW;
  double muon_momentum = 0.95;
  std::int64_t muon_iterations = 5;  ///< of Newton-Schulz
  double learning_rate = 3e-4;
  double min_learning_rate = 3e-5;  ///< reached at the end of the decay
  std::int64_t warmup_steps = 10;
  std::int64_t decay_steps = 0;  ///< 0: the number of steps of the run
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double clip_norm = 1.0;  ///< 0: no clipping
};

/// Dynamic loss scaling of fp16 runs (Micikevicius et al. 2018, arXiv 1710.03740, section 3.2): the scale doubles after
/// `interval` steps without overflow and is multiplied by `backoff` after one, which is then skipped. Values as
/// torch.amp.GradScaler's.
struct LossScaling {
  double initial = 65536;        ///< 1 or more; powers of two change no bit of what does not overflow
  std::int64_t interval = 2000;  ///< steps
  double backoff = 0.5;          ///< above 0, below 1
};

/// Low-rank adaptation (Hu et al. 2021, arXiv 2106.09685): the model's own parameters stay as they are, and of a target
/// y = x W an adapter is trained: y = x W + alpha / rank (x A) B with A (in, rank), random at first, and B (rank, out),
/// which begins at 0. Queries, keys and values have one adapter, and so have gate and value of a gated MLP; each expert
/// has its own. Of latent attention what makes latents and heads has one each, all of them `qkv`.
struct Lora {
  std::int64_t rank = 0;                                       ///< 0: there are no adapters, all parameters are trained
  double alpha = 0;                                            ///< 0: the rank
  bool qkv = true, projection = true, fc1 = true, fc2 = true;  ///< targets: attention's two products, the MLP's

  bool used() const { return rank > 0; }
  double scale() const { return used() && alpha > 0 ? alpha / static_cast<double>(rank) : 1; }
  bool operator==(const Lora&) const = default;
};

/// Documents that a sample is packed of, one after another, the last cut at the sample's end. Their lengths are drawn
/// one by one, by seed and number of the sample alone. A token attends to its own document, whose positions begin at 0.
struct Documents {
  std::vector<std::int64_t> lengths;  ///< tokens; none: a sample is one document
  std::vector<std::int64_t> weights;  ///< how often each length comes, against the others; none: all as often

  bool used() const { return !lengths.empty(); }
  std::int64_t weight(std::size_t i) const { return weights.empty() ? 1 : weights[i]; }
  bool operator==(const Documents&) const = default;
};

/// How unevenly tokens choose experts that lie on several ranks, in place of models::Experts::imbalance.
struct ExpertLoad {
  std::vector<std::int64_t> choices;  ///< how often each expert was chosen, in their order
  double zipf = 0;  ///< else: the i-th most popular expert is chosen 1 / i^zipf as often as the first, 0: not told

  bool used() const { return !choices.empty() || zipf > 0; }
  /// Of `ranks` ranks with equally many of `experts` experts, the choices of the one with most over the even share.
  /// Counted ones lie in their order, as trainers place experts; those of Zipf's law are dealt out in turn, the most
  /// popular first.
  double imbalance(std::int64_t experts, std::int64_t ranks) const;
  bool operator==(const ExpertLoad&) const = default;
};

struct Training {
  std::int64_t sequence = 0;      ///< tokens per sample; 0 in a file: the model's maximum
  std::int64_t global_batch = 0;  ///< samples per optimizer step
  std::int64_t total_tokens = 0;  ///< of the whole training; 0: not said
  double dropout = 0;             ///< probability, at embedding, attention and residual
  std::uint64_t seed = 1234;
  Optimizer optimizer;
  LossScaling loss_scaling;  ///< where Plan::precision is fp16
  Lora lora;
  Documents documents;
  ExpertLoad expert_load;
};

}  // namespace trivium::program
