// What the passes of a run took, layer by layer: the timings a better split is made of.
#pragma once

#include <vector>

#include "program/record/run_record.h"

namespace trivium::calibration {

/// Seconds of one micro-batch, forward (with recomputation of it in `backward`) and backward; waiting is left out.
struct PassSeconds {
  double forward = 0, backward = 0, weights = 0;  ///< `weights`: second half of a split backward
  double total() const { return forward + backward + weights; }
};

/// Of one rank, medians over the micro-batches and steps of the record's timeline.
struct RankTimes {
  int rank = 0, stage = 0;
  std::vector<int> layers;           ///< numbers in the model, ascending
  std::vector<PassSeconds> seconds;  ///< of each of them
  PassSeconds embedding, head;       ///< where the rank holds them
  int replica_kind = 0;              ///< its replica takes micro-batches of one size with all of this kind
  double layer_mean = 0;             ///< of all passes of a layer
};

/// By rank. The first step of a run warms caches and is left out where there are others. Errors: Failure(kInput) where
/// the record holds no timeline, or one that is not of its plan.
std::vector<RankTimes> rank_times(const program::Program& program, const program::RunRecord& record);

}  // namespace trivium::calibration
