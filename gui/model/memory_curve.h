// Memory of a rank over the time of an iteration.
#pragma once

#include <cstdint>
#include <vector>

#include "gui/model/evaluation.h"

namespace trivium::gui {

/// From `seconds` on the rank holds `bytes`: what is always held, and of the micro-batches under way what their
/// backwards need and what gradients of weights that come later do.
struct MemoryPoint {
  double seconds = 0;
  std::int64_t bytes = 0;
  std::int64_t frames = 0, deferred = 0;
};

/// A staircase: what is always held, and a frame for every micro-batch between the begin of its forward and the end of
/// its backward. Frames are allocated for the whole step; the curve says how many of them are in use. Precondition: the
/// evaluation runs. `memory`: of the rank, or of its stage.
std::vector<MemoryPoint> memory_curve(const Evaluation& evaluation, const simulator::StageMemory& memory);

}  // namespace trivium::gui
