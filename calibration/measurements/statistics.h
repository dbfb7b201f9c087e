// Figures over many errors: pure functions of numbers.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace trivium::calibration {

/// One prediction with its measurement, both above zero.
struct Pair {
  double measured = 0;
  double predicted = 0;
  double error() const { return predicted / measured - 1; }
};

inline constexpr double kNormalSpread = 1.4826;  ///< standard deviations that a median distance of normal errors is

constexpr double square(double x) { return x * x; }

/// Middle value, the mean of the two middle ones for an even count; 0 for none.
double median(std::vector<double> values);

/// Of (value, weight): the value at which half of the weight, taken in order of values, is passed; 0 for none.
double weighted_median(std::vector<std::pair<double, double>> values);

/// The value below which the share `q` (0 … 1) lies, linear between neighbours; 0 for none.
double quantile(std::vector<double> values, double q);

/// Spearman's rank correlation: Pearson's of the ranks, equal values sharing their mean rank. Not
/// defined for fewer than two pairs, or where one side is constant.
std::optional<double> spearman(std::span<const Pair> pairs);

}  // namespace trivium::calibration
