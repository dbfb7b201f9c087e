// From what predicted iterations of measured runs were off by to how far others may be off.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "calibration/certainty/learn.h"
#include "simulator/certainty/time_errors.h"

namespace trivium::calibration {

/// One measured run. Errors are log(measured / predicted).
struct TimeRun {
  simulator::RunLikeness like;
  simulator::Composition made_of;
  std::string source;
  std::string sweep;  ///< equal for runs of one model, batch and machine; empty: unknown
  std::string name;   ///< of the row
  double predicted_s = 0;
  double error = 0;     ///< as the shipped profiles predict it
  double left_out = 0;  ///< as profiles would that had not learned from its source
};

/// Of runs of one kind on one family of devices, with their sources left out: the share within the 90 % interval and
/// outside it, and the mean interval score of log(measured / predicted) (Gneiting and Raftery 2007, JASA 102:359, eq.
/// 43): the width plus 20 times what lies outside.
struct ClassCoverage {
  std::string kind, device;
  int runs = 0;
  double within = 0, below = 0, above = 0;
  double width = 0;  ///< median of high / low - 1 where devices are busy; 0 where none are
  double score = 0;
  double strangers = 0;  ///< within, where the quantiles have not seen the run's source either
};

/// The same of runs whose machine and stack, one of them, or neither was measured by others.
struct MeasuredWidth {
  int runs = 0;
  double width = 0, within = 0;  ///< of predictions with busy devices
};

struct LearnedTime {
  simulator::TimeErrors errors;
  std::vector<Coverage> coverage;  ///< by source, in name order
  Coverage all;
  std::vector<ClassCoverage> classes;
  std::array<MeasuredWidth, 3> widths{};  ///< by how many of machine and stack were measured
};

/// What runs share and the rule of their spread are those of the least mean interval score with sources left out: its
/// logarithm, over classes of a kind on a family of devices, a class weighing the root of its runs up to a bound, under
/// a prior. Quantiles are weighted quantiles of what is left, a source weighing its runs up to a bound, where few runs
/// of other devices and kinds count as well.
LearnedTime learn_time(const std::vector<TimeRun>& runs);

/// For people.
std::string to_table(const LearnedTime& learned);

/// Every run with what its prediction is made of, and its interval with its source left out, of log(measured /
/// predicted).
std::string rows_csv(const std::vector<TimeRun>& runs, const LearnedTime& learned);

}  // namespace trivium::calibration
