// Where an iteration of one rank of a foreign run went. Seconds are of one iteration, the mean over the whole ones.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "calibration/foreign/rank_run.h"

namespace trivium::calibration::foreign {

struct MeasuredOp {
  double count = 0;    ///< kernels
  double seconds = 0;  ///< of collectives without the wait for their last member, where other ranks show it
  double unfused_s = 0, recomputed_s = 0;
  double unsplit_s = 0;   ///< of products that the plan's tensor ranks share
  double flops = 0;       ///< of products whose shape is told
  double bytes = 0;       ///< of collectives
  std::string longest{};  ///< the kernel that took most of it
};

/// What an iteration's time went to; a partition of it, but for copies to and from the host.
struct StepTimes {
  double seconds = 0;
  double compute_s = 0, wait_s = 0, transfer_s = 0;
  double host_s = 0;              ///< inside an operator that does no work itself: the framework
  double gap_s = 0;               ///< outside any operator, or on a GPU: nothing runs
  std::map<int, double> waits_s;  ///< by the rank that came last
};

/// A stretch of an iteration in which nothing ran on a rank, long enough to have a cause of its own.
struct Gap {
  enum class Place : std::uint8_t { kBeforeForward, kWithin, kAfterOptimizer };
  int step = 0;
  TimeSpan span;  ///< on the trace's own clock
  Place place = Place::kWithin;
  std::string range;  ///< the trainer's own name of what it did, where it marked that
};

struct RankTimes {
  int rank = 0;
  std::vector<StepTimes> steps;
  std::vector<Gap> long_gaps;
  double iteration_s = 0;
  std::map<std::string, MeasuredOp> ops;        ///< matched ones and collectives
  std::map<std::string, MeasuredOp> unmatched;  ///< by the kernel's name
  double matched_s = 0, unmatched_s = 0;        ///< of all kernels but collectives
  // A partition of the iteration, with what is left over: copies to and from the host.
  double compute_s = 0;                     ///< one kernel or more runs, or an operator of cores works
  std::map<int, double> waits_s;            ///< stands still at a collective, by the rank that came to it last
  std::map<std::string, double> exposed_s;  ///< stands still while a collective moves data
  double idle_s = 0;                        ///< nothing runs, or the framework does
  double gaps = 0;                          ///< how often
  double longest_gap_s = 0;                 ///< the longest of one iteration, mean over them
};

/// In the order of `runs`, which are aligned.
std::vector<RankTimes> times_of(const std::vector<RankRun>& runs);

}  // namespace trivium::calibration::foreign
