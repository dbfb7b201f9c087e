// What is asked of a training: lengths, batch, optimizer. How it is split is the Plan's business.
#pragma once

#include <cstdint>

namespace trivium::program {

/// AdamW with decoupled weight decay on matrices only, global-norm clipping, linear warm-up and cosine decay.
struct Optimizer {
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

struct Training {
  std::int64_t sequence = 0;      ///< tokens per sample; 0 in a file: the model's maximum
  std::int64_t global_batch = 0;  ///< samples per optimizer step
  std::int64_t total_tokens = 0;  ///< of the whole training; 0: not said
  double dropout = 0;             ///< probability, at embedding, attention and residual
  std::uint64_t seed = 1234;
  Optimizer optimizer;
  LossScaling loss_scaling;  ///< where Plan::precision is fp16
};

}  // namespace trivium::program
