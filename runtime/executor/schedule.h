// The learning rate over the steps of a run.
#pragma once

#include <cstdint>

#include "program/training.h"

namespace trivium::runtime {

/// Linear warm-up, then cosine decay to `min_learning_rate` over `decay_steps` (0: `steps`), constant behind it
/// (Loshchilov & Hutter 2017, arXiv 1608.03983, without restarts).
double learning_rate(const program::Optimizer& optimizer, std::int64_t step, std::int64_t steps);

}  // namespace trivium::runtime
