// The training schedule of a training: learning rate and batch, step by step. Everything here is a function of the step
// alone, so that a training that was stopped, or moved to another plan, goes on as if it had not been.
#pragma once

#include <cstdint>
#include <string_view>

#include "program/plan/training.h"

namespace trivium::runtime {

/// What follows the linear warm-up.
enum class Decay : std::uint8_t {
  kCosine,  ///< Loshchilov & Hutter 2017, arXiv 1608.03983, without restarts
  kConstant,
  kLinear,
  kWsd  ///< warm-up, stable, decay: constant, then 1 - sqrt over the last steps (Hu et al. 2024, arXiv 2404.06395;
        ///< the form of the decay: Hägele et al. 2024, arXiv 2405.18392, section 3)
};
std::string_view name_of(Decay decay);  ///< "cosine" "constant" "linear" "wsd"

/// How the learning rate follows the batch.
enum class RateScaling : std::uint8_t {
  kNone,
  kLinear,     ///< rate x batch / base batch (Goyal et al. 2017, arXiv 1706.02677, section 2.1)
  kSquareRoot  ///< its root, for Adam (Malladi et al. 2022, arXiv 2205.10287, definition 3)
};
std::string_view name_of(RateScaling scaling);  ///< "none" "linear" "sqrt"

/// Batches that grow: `start` samples, `increment` more after every `every` steps, until the plan's global batch.
struct BatchRamp {
  std::int64_t start = 0;  ///< 0: no ramp
  std::int64_t increment = 0;
  std::int64_t every = 0;

  bool operator==(const BatchRamp&) const = default;
};

struct TrainingSchedule {
  Decay decay = Decay::kCosine;
  std::int64_t cooldown_steps = 0;  ///< kWsd: how many of the last steps decay; 0: a tenth of all
  RateScaling scaling = RateScaling::kNone;
  std::int64_t base_batch = 0;  ///< samples for which the optimizer's learning rate is meant; not 0 where it is scaled
  BatchRamp ramp;
};

/// Samples of a step, and of all steps before it.
std::int64_t batch_at(const BatchRamp& ramp, std::int64_t global_batch, std::int64_t step);
std::int64_t samples_before(const BatchRamp& ramp, std::int64_t global_batch, std::int64_t step);
/// The next step after `step` at which the batch changes; `steps` where it stays.
std::int64_t next_batch_change(const BatchRamp& ramp, std::int64_t global_batch, std::int64_t step, std::int64_t steps);

/// Linear warm-up, then `training_schedule.decay` from the optimizer's learning rate to its `min_learning_rate` over
/// its `decay_steps` (0: `steps`), and that rate after them; both scaled by the batch of the step.
double learning_rate(const TrainingSchedule& training_schedule, const program::Optimizer& optimizer,
                     std::int64_t global_batch, std::int64_t step, std::int64_t steps);

}  // namespace trivium::runtime
