// What a step of the optimizer does to all gradients alike.
#pragma once

#include <algorithm>
#include <cmath>

#include "runtime/cpu/operands.h"

namespace trivium::runtime::cpu {

/// Clipping by the global norm (Pascanu et al. 2013, arXiv 1211.5063): g min(1, clip / (norm + 1e-6)). Gradients and
/// their norm, the op's first operand, carry the loss's scale, which is taken off with it.
struct Clipping {
  double norm = 0, factor = 1;

  /// Whether there is a step to take: all ranks have the same norm, and leave out the same steps.
  bool finite() const { return std::isfinite(norm); }
};

[[maybe_unused]] static Clipping clipping_of(const KernelArguments& a) {
  const double* pair = input<double>(a, 0);
  const double most = a.optimizer->clip_norm;
  Clipping clipping;
  clipping.norm = std::sqrt(pair[0] + pair[1]) / a.values->loss_scale;
  clipping.factor = (most > 0 ? std::min(1.0, most / (clipping.norm + 1e-6)) : 1.0) / a.values->loss_scale;
  return clipping;
}

}  // namespace trivium::runtime::cpu
