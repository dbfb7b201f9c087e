// Dynamic loss scaling of fp16 trainings (program/plan/training.h).
#pragma once

#include <cstdint>

#include "program/ir/program.h"

namespace trivium::runtime {

/// Where the scale stands before a step. The same on all ranks: it follows from the gradient norms, which they share.
struct LossScale {
  double scale = 1;
  std::int64_t steps = 0;    ///< since it was last changed
  std::int64_t skipped = 0;  ///< steps of the training whose gradients overflowed
  bool operator==(const LossScale&) const = default;
};

/// The scale to begin with; 1 where nothing is scaled.
LossScale first_scale(const program::Settings& settings);

/// The scale after a step. `overflow`: its gradient norm was not finite, so it was skipped.
LossScale next_scale(const LossScale& now, const program::LossScaling& how, bool overflow);

/// Whether an overflow may come from the scale: there is a smaller one.
inline bool can_back_off(const LossScale& now) { return now.scale > 1; }

}  // namespace trivium::runtime
