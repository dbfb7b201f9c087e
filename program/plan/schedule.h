// The order in which a pipeline stage runs its forwards and backwards.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program/plan/plan.h"

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
/// groups of `pipeline` micro-batches (Narayanan et al. 2021, arXiv 2104.04473, §2.2) · zero_bubble: 1f1b with the
/// backward in two halves, of which stage s runs the second s micro-batches late, so that it fills the time in which
/// 1f1b waits for the next gradient (ZB-H1; Qi et al. 2023, arXiv 2401.10241). Every stage then has up to `pipeline`
/// micro-batches in flight, as many as the first stage of 1f1b; equal stages idle (p-1)(f+b-w) where w <= f, w <= b, m
/// >= p.
std::vector<Slot> schedule_of(Schedule schedule, int stage, int pipeline, int virtual_stages,
                              std::int64_t micro_batches);

/// Micro-batches that are between their forward and the end of their backward at once, at most, in any of `chunks`
/// together: chunks of one kind share their frames.
int frames_needed(const std::vector<Slot>& slots, std::span<const int> chunks);
int frames_needed(const std::vector<Slot>& slots, int chunk);

/// Micro-batches between the halves of their backwards at once, at most, in any of `chunks` together; 0 where backwards
/// are whole.
int delayed_frames_needed(const std::vector<Slot>& slots, std::span<const int> chunks);

/// Whether the schedule runs backwards in two halves.
constexpr bool splits_backward(Schedule schedule) { return schedule == Schedule::kZeroBubble; }

}  // namespace trivium::program
