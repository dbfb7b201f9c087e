// The effect of one choice: published runs that differ in one setting, predicted against measured.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "calibration/measurements/published_row.h"
#include "calibration/validate/validate.h"

namespace trivium::calibration {

/// Two plans that were both measured and differ in one setting. Changes are of the time that a token takes, second over
/// first, - 1.
struct PairOfRuns {
  std::string setting;        ///< "precision"
  std::string from, to;       ///< its values
  std::string first, second;  ///< cases
  double measured = 0, predicted = 0;
  bool has_sign() const;    ///< whether the measured change is large enough to have a sign
  bool sign_right() const;  ///< precondition: has_sign()
  bool within_5_points() const;
};

/// What pairs with one setting have in common, or with all ("all").
struct PairSummary {
  std::string setting;
  int pairs = 0;
  int with_sign = 0, sign_right = 0;  ///< of pairs whose measured change is above 1 %
  int within_5_points = 0;
  double mean_difference = 0;  ///< mean of |predicted - measured| change
};

/// Pairs among runs of one source, software version, machine, number of devices and shape of model: all settings equal
/// but one, of which the values follow each other in their order. Runs of tier C, runs that are not predicted, and runs
/// measured below 10 % of MFU are in none; repeats count once, at their median. Ordered by setting. `rows` are the
/// predictions of `runs`, in their order.
std::vector<PairOfRuns> find_pairs(std::span<const PublishedRun> runs, std::span<const ValidationRow> rows);

/// One for each setting that has pairs, then "all". Empty without pairs.
std::vector<PairSummary> summarise(std::span<const PairOfRuns> pairs);

/// For people: the summary, then the pairs, the largest difference first.
std::string to_table(std::span<const PairOfRuns> pairs);

/// Members `pairs` and `pair_settings` of `trivium.validation/1`.
void add_pairs(nlohmann::json& validation, std::span<const PairOfRuns> pairs);

}  // namespace trivium::calibration
