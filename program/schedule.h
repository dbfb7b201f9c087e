// The order in which a pipeline stage runs its forwards and backwards.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program/plan.h"

namespace trivium::program {

/// One compute task of a stage.
struct Slot {
  bool forward = true;
  int chunk = 0;  ///< of the stage, 0 … virtual_stages-1
  std::int64_t micro_batch = 0;
  bool weights = false;  ///< the second half of a backward: its weight gradients (zero_bubble)
  bool operator==(const Slot&) const = default;
};

/// Forwards and backwards of `stage` for `micro_batches` micro-batches. In every schedule a chunk's backwards come in
/// micro-batch order, so gradients are summed in one order everywhere.
/// sequential: F0 B0 F1 B1 … · gpipe: all F, then all B · 1f1b: pipeline-1-stage forwards of warm-up, then one forward
/// and one backward in turn (Narayanan et al. 2019, PipeDream-Flush) · interleaved: the same over virtual stages in
/// groups of `pipeline` micro-batches (Narayanan et al. 2021, arXiv 2104.04473, §2.2).
std::vector<Slot> schedule_of(Schedule schedule, int stage, int pipeline, int virtual_stages,
                              std::int64_t micro_batches);

/// Micro-batches that are between their forward and their backward at once, at most, in any of `chunks` together:
/// chunks of one kind share their frames.
int frames_needed(const std::vector<Slot>& slots, std::span<const int> chunks);
int frames_needed(const std::vector<Slot>& slots, int chunk);

}  // namespace trivium::program
