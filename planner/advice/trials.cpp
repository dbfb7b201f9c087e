#include "planner/advice/trials.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "planner/search/ranking.h"

namespace trivium::planner {
namespace {

constexpr double kReach = 8;     // deviations either way that are summed over
constexpr double kStep = 0.005;  // of a deviation
constexpr double kLeastTwin = 1e-6;

/// Of the standard normal distribution.
double above(double z) { return std::erfc(z / std::numbers::sqrt2) / 2; }

/// That a normal variable of mean `own` lies below those of the other means, all of deviation 1.
double least_probability(std::size_t own, const std::vector<double>& means) {
  double sum = 0;
  for (double z = -kReach; z <= kReach; z += kStep) {
    double all = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    for (std::size_t other = 0; other < means.size(); ++other) {
      if (other != own) all *= above(means[own] + z - means[other]);
    }
    sum += all * kStep;
  }
  return sum;
}

}  // namespace

std::vector<Trial> trials(const SearchResult& result, int count) {
  std::vector<Trial> all;
  for (const auto* candidates : {&result.best, &result.others}) {
    for (const Candidate& candidate : *candidates) all.push_back({candidate, 0});
  }
  if (all.empty()) return all;
  const double twin = std::max(all.front().candidate.simulation.certainty.twin, kLeastTwin);
  std::vector<double> means;
  for (const Trial& trial : all) means.push_back(std::log(trial.candidate.simulation.iteration_s) / twin);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].fastest_probability = least_probability(i, means);
  std::stable_sort(all.begin(), all.end(), [](const Trial& a, const Trial& b) {
    if (a.fastest_probability != b.fastest_probability) return a.fastest_probability > b.fastest_probability;
    return faster(a.candidate, b.candidate);
  });
  all.resize(std::min(all.size(), static_cast<std::size_t>(count)));
  return all;
}

}  // namespace trivium::planner
