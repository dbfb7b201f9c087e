#include "planner/advice/trials.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "planner/search/ranking.h"

namespace trivium::planner {
namespace {

constexpr double kReach = 8;     // deviations either way that are summed over
constexpr double kStep = 0.005;  // of a deviation
constexpr double kLeastBetweenPlans = 1e-6;

/// Of the standard normal distribution.
double above(double z) { return std::erfc(z / std::numbers::sqrt2) / 2; }

/// Of normal variables of these means and deviation 1, that each is the least: over a grid, the density of one times
/// what all others leave above.
std::vector<double> least_probabilities(const std::vector<double>& means) {
  constexpr double kNone = 1e-300;
  std::vector<double> sums(means.size()), logs(means.size());
  const double first = std::ranges::min(means);
  for (double x = first - kReach; x <= first + kReach; x += kStep) {
    double all = 0;
    for (std::size_t i = 0; i < means.size(); ++i) all += logs[i] = std::log(std::max(above(x - means[i]), kNone));
    for (std::size_t i = 0; i < means.size(); ++i) {
      const double distance = x - means[i];
      sums[i] += std::exp(all - logs[i] - distance * distance / 2) * kStep / std::sqrt(2 * std::numbers::pi);
    }
  }
  return sums;
}

}  // namespace

std::vector<Trial> trials(const SearchResult& result, int count) {
  std::vector<Trial> all;
  for (const auto* candidates : {&result.best, &result.others}) {
    for (const Candidate& candidate : *candidates) all.push_back({candidate, 0});
  }
  if (all.empty()) return all;
  const double between_plans = std::max(all.front().candidate.simulation.certainty.between_plans, kLeastBetweenPlans);
  std::vector<double> means;
  for (const Trial& trial : all) means.push_back(std::log(trial.candidate.simulation.iteration_s) / between_plans);
  const std::vector<double> least = least_probabilities(means);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].fastest_probability = least[i];
  std::stable_sort(all.begin(), all.end(), [](const Trial& a, const Trial& b) {
    if (a.fastest_probability != b.fastest_probability) return a.fastest_probability > b.fastest_probability;
    return faster(a.candidate, b.candidate);
  });
  all.resize(std::min(all.size(), static_cast<std::size_t>(count)));
  return all;
}

}  // namespace trivium::planner
