// Learning a machine from what was measured on it: its profile's numbers, fitted, with where each comes from.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "calibration/measurements/measurements.h"
#include "hardware_profiles/hardware.h"
#include "program/ir/rate_kind.h"
#include "program/record/run_record.h"

namespace trivium::calibration {

/// One number of the profile that was looked at.
struct FittedNumber {
  std::string pointer;           ///< JSON pointer in the profile
  double before = 0, after = 0;  ///< SI units
  double spread = 0;             ///< relative standard deviation of `after`, as far as the measurements tell
  int samples = 0;               ///< measurements that spoke of it
  bool determined = true;        ///< false: kept near the base, since the measurements do not tell
  std::string from;              ///< lineage: which data made it, or why it was left alone
};

/// The largest work of a kind that was measured.
struct Reach {
  double flops = 0, bytes = 0;
};

struct Fit {
  hardware::Node node;                ///< `sources` says for every fitted number what data made it
  std::vector<FittedNumber> numbers;  ///< in the order in which they were fitted
  std::vector<std::string> report;    ///< for people, one line each
  std::map<program::RateKind, Reach> reach;
};

/// Fits a copy of `base`. From near to far: the topology says what there is; benchmarks of collectives set the links;
/// profilers' kernels set the device; our own runs set every op's rate and the links of a CPU node; whole iterations
/// set, last, the few constants of a cluster that only they show. What no measurement covers, or what they cannot
/// distinguish, stays as in the base and is named. Runs with more ranks than cores are passed over: their ops were
/// interrupted by each other. Errors: Failure(kInput) when nothing was measured, or some of it is of another kind of
/// machine or of another GPU, has no events, or names ops that its plan does not have.
Fit calibrate(const hardware::Node& base, const Measurements& measurements);

/// The same from run records alone.
Fit calibrate(const hardware::Node& base, std::span<const program::RunRecord> records);

/// Op kinds of a job whose largest ops lie beyond what was measured by more than a factor of two, as sentences: their
/// times are extrapolated. Only for kinds that the fit learnt.
std::vector<std::string> extrapolations(const Fit& fit, const program::Job& job);

}  // namespace trivium::calibration
