// Ranks of a run as they are compared with each other.
#pragma once

#include <string>
#include <vector>

#include "calibration/foreign/explanation.h"
#include "calibration/foreign/op_tally.h"
#include "calibration/foreign/rank_times.h"

namespace trivium::calibration::foreign {

struct Side {
  const RankRun* run = nullptr;
  const RankTimes* times = nullptr;
  OpTally tally;
  int stage = 0;           ///< of a pipeline; 0 without one
  double tokens = 0;       ///< that it embeds in an iteration; 0: not told
  double iteration_s = 0;  ///< the median

  double step_median(double StepTimes::*member) const;
};

struct Sides {
  std::vector<Side> ranks;
  int stages = 1;
  bool on_cores = false;
  bool exchanges_experts = false;  ///< tokens go all to all

  /// Ranks that do the same work as one: of its stage. Empty: it has none among the traced ones.
  std::vector<const Side*> peers_of(const Side& side) const;
  /// Those, or where there are none all others.
  std::vector<const Side*> others_of(const Side& side) const;
};

Sides sides_of(const std::vector<RankRun>& runs, const std::vector<RankTimes>& times);

/// Seconds of the iteration that the other ranks stand still for one, the largest of their medians; 0 where it is the
/// only one traced.
double waited_for(const Sides& sides, const Side& side);

/// A pointer to spans of a rank's trace.
std::vector<SeenAt> seen_at(const Side& side, const std::vector<TimeSpan>& spans);

}  // namespace trivium::calibration::foreign
