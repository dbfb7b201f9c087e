// Better stage layers from what a run measured: layers move from slow stages to fast ones.
#pragma once

#include <string>
#include <vector>

#include "calibration/replan/stage_times.h"
#include "hardware_profiles/hardware.h"
#include "program/plan/plan.h"

namespace trivium::calibration {

/// A rank that takes longer for a layer than the middle rank does.
struct Straggler {
  int rank = 0, stage = 0;
  double factor = 1;  ///< its mean layer over the median of all ranks'
};

/// One chunk of the pipeline (a stage, or with virtual stages one of its parts).
struct ChunkTimes {
  int stage = 0;
  std::vector<int> ranks;  ///< that hold it
  double layer_s = 0;      ///< mean layer of its slowest rank: all passes of one micro-batch
  double ends_s = 0;       ///< embedding and head, where it holds them
  int layers = 0, proposed = 0;
  double before_s = 0, after_s = 0;  ///< all passes of one micro-batch
};

struct Replan {
  program::Plan plan;  ///< the proposal: the plan that ran, but for its stage layers
  bool changed = false;
  std::vector<ChunkTimes> chunks;  ///< in model order
  std::vector<Straggler> stragglers;
  double measured_iteration_s = 0;   ///< median of the steps, the first left out where there are others
  double predicted_iteration_s = 0;  ///< of the proposal
  std::string limited;               ///< which stages hold no more layers for want of memory, or empty
};

/// Ranks from this factor on are called stragglers.
inline constexpr double kStragglerFactor = 1.2;

/// Dynamic programming over chunks and layers assigned so far, in model order: slowest(c, n) = min over k of
/// max(slowest(c-1, n-k), ends_c + the k layers after n-k as c computes them), and among the splits whose slowest chunk
/// is that fast, the one with the least total time. A layer moved to another stage takes the time of that stage's
/// layers of its sort (dense, mixture); a sort that the stage has not run takes its time elsewhere, scaled by how fast
/// the stage is otherwise. A stage is as slow as its slowest rank. Chunks hold at most as many layers as fit the
/// cluster's memory. The predicted gain of the proposal is the difference between the passes of both plans, walked in
/// the order of the schedule with measured times (simulator/analytic/schedule_costs.h); everything else is assumed
/// unchanged. Where nothing is gained the plan stays as it is. Errors: Failure(kInput) where the record cannot be used.
Replan replan(const program::RunRecord& record, const hardware::Cluster& cluster);

}  // namespace trivium::calibration
