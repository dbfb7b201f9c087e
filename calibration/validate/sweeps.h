// What it would have cost to trust the model: the regret of its choice among plans that were all measured.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/validate/validate.h"

namespace trivium::calibration {

/// A measured and predicted case of a sweep.
struct SweepCase {
  std::string sweep, plan;
  double measured = 0, predicted = 0;
  double samples_per_device = 0;
  double mfu = 0;              ///< measured, a share
  double fit_probability = 1;  ///< predicted
};

/// Cases of one sweep with equal plans are one plan, at their median. Sweeps of three plans or more, by name; among
/// plans predicted exactly equal the slowest counts as chosen.
std::vector<Sweep> find_sweeps(std::span<const SweepCase> cases);

}  // namespace trivium::calibration
