// The few statistics that timings need.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace trivium::runtime::microbench {

/// The value below which the share `q` (0 … 1) lies, the nearest below; 0 for none.
double quantile(std::vector<double> values, double q);

/// What lies between the tenth and the ninetieth of a hundred, as a share of the median; 0 for none.
double spread(const std::vector<double>& values);

/// "; spread 12 %": a share, as it is appended to the source of a number of a profile.
std::string spread_words(double share);

/// Mean of repetitions of one thing within a step; beyond four times their median one was interrupted, not slow, and
/// counts as four medians.
double mean_without_interruptions(std::span<const double> seconds);

}  // namespace trivium::runtime::microbench
