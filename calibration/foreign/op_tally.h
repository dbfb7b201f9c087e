// How often and how long a rank runs every operator, iteration by iteration: what ranks are compared by.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calibration/foreign/rank_run.h"

namespace trivium::calibration::foreign {

/// One operator on inputs of one shape; on a GPU one kernel.
struct Tally {
  std::string op;               ///< of the plan, or the operator's own name
  double m = 0, n = 0, k = 0;   ///< of a product
  bool backward = false;        ///< some of the calls are a backward's
  std::vector<double> counts;   ///< by iteration
  std::vector<double> seconds;  ///< by iteration
  std::vector<double> calls;    ///< seconds of each
  std::vector<TimeSpan> first;  ///< of the first calls, on the trace's own clock

  double count() const;   ///< of an iteration, the median
  double each_s() const;  ///< of a call: the mean of those between the second and the eighth tenth
};

/// By operator and shapes, in words.
using OpTally = std::map<std::string, Tally>;

/// Of what computes: collectives and what the framework itself does are left out.
OpTally tally_of(const RankRun& run);

double median_of(std::vector<double> values);  ///< 0 of none

}  // namespace trivium::calibration::foreign
