// Foreign kernels to the ops of a plan: by name, by what called them, by shape, and where those leave a choice by
// order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calibration/foreign/plan_ops.h"
#include "calibration/measurements/kernel_trace.h"

namespace trivium::calibration::foreign {

/// What became of a kernel.
struct Match {
  enum class Kind : std::uint8_t {
    kOp,         ///< `op` names an op of a plan
    kUnmatched,  ///< nothing is known of it
    kHost,       ///< an operator on cores that does no work: views, allocations, the framework itself
    kCollective  ///< `op` names it
  };
  Kind kind = Kind::kUnmatched;
  bool attends = false;     ///< of attention: its kernel, or scores, softmax or values by themselves
  bool unfused = false;     ///< one of the latter
  bool unsplit = false;     ///< a product that the plan splits among tensor ranks, whole
  bool recomputed = false;  ///< a forward op below the backward of a checkpoint
  bool backward = false;
  std::string op;
};

/// One for every kernel, in their order.
std::vector<Match> match_kernels(const imports::KernelTrace& trace, const PlanShapes& shapes);

/// Which of `products` have this shape; empty: none. Names end with "" forward, "_dgrad" or "_wgrad" backward.
std::vector<std::string> products_of_shape(const imports::Kernel& kernel, const std::vector<PlanProduct>& products,
                                           bool backward);

}  // namespace trivium::calibration::foreign
