#include "planner/advice/trial_belief.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace trivium::planner {
namespace {

constexpr double kFarthest = 8;   // deviations either way that are summed over
constexpr double kSteps = 400;    // of a sum over one variable
constexpr int kSharedSteps = 17;  // of the sum over the shared part
constexpr double kSharedReach = 4;
constexpr double kLeastDeviation = 1e-4;

struct Normal {
  double mean = 0, deviation = 0;
};

/// That a normal variable is above x.
double above(const Normal& of, double x) { return std::erfc((x - of.mean) / of.deviation / std::numbers::sqrt2) / 2; }

/// Of independent normal variables, that each is the least.
std::vector<double> least_probabilities(const std::vector<Normal>& all) {
  std::vector<double> least(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Normal& one = all[i];
    const double step = 2 * kFarthest / kSteps;
    for (double z = -kFarthest; z <= kFarthest; z += step) {
      double density = std::exp(-z * z / 2) * step / std::sqrt(2 * std::numbers::pi);
      for (std::size_t j = 0; j < all.size() && density > 0; ++j) {
        if (j != i) density *= above(all[j], one.mean + z * one.deviation);
      }
      least[i] += density;
    }
  }
  return least;
}

/// What is left to know of the shared part.
Normal shared_part(std::span<const TrialTime> plans, const TrialErrors& errors) {
  const double own = errors.own * errors.own + errors.noise * errors.noise;
  double precision = 1 / std::max(errors.shared * errors.shared, kLeastDeviation * kLeastDeviation), sum = 0;
  for (const TrialTime& plan : plans) {
    if (!plan.measured_s || plan.failed) continue;
    precision += 1 / own;
    sum += std::log(*plan.measured_s / plan.predicted_s) / own;
  }
  return {sum / precision, std::sqrt(1 / precision)};
}

/// A plan's time where the shared part is known: that of a measured plan by what it was measured at.
Normal time_of(const TrialTime& plan, double shared, const TrialErrors& errors) {
  const double prior = std::log(plan.predicted_s) + shared;
  if (!plan.measured_s) return {prior, errors.own};
  const double own = errors.own * errors.own, noise = errors.noise * errors.noise;
  const double trust = own / (own + noise);
  const double deviation = std::sqrt(own * noise / (own + noise));
  return {prior + trust * (std::log(*plan.measured_s) - prior), std::max(deviation, kLeastDeviation)};
}

}  // namespace

TrialBelief belief_of(std::span<const TrialTime> plans, const TrialErrors& errors) {
  const Normal shared = shared_part(plans, errors);
  TrialBelief belief;
  belief.fastest.resize(plans.size());
  std::vector<std::size_t> running;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Normal at = time_of(plans[i], shared.mean, errors);
    const double moved = plans[i].measured_s ? 0 : shared.deviation;
    belief.expected_s.push_back(std::exp(at.mean));
    belief.deviation.push_back(std::hypot(at.deviation, moved));
    if (!plans[i].failed) running.push_back(i);
  }
  double weights = 0;
  for (int step = 0; step < kSharedSteps; ++step) {
    const double z = kSharedReach * (2.0 * step / (kSharedSteps - 1) - 1);
    const double weight = std::exp(-z * z / 2);
    std::vector<Normal> times;
    for (const std::size_t i : running) times.push_back(time_of(plans[i], shared.mean + z * shared.deviation, errors));
    const std::vector<double> least = least_probabilities(times);
    for (std::size_t i = 0; i < running.size(); ++i) belief.fastest[running[i]] += weight * least[i];
    weights += weight;
  }
  for (double& one : belief.fastest) one /= weights;
  return belief;
}

std::optional<std::size_t> next_trial(std::span<const TrialTime> plans, const TrialErrors& errors, double probability) {
  const TrialBelief belief = belief_of(plans, errors);
  std::optional<std::size_t> next;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].failed) continue;
    if (plans[i].measured_s && belief.fastest[i] >= probability) return std::nullopt;
    if (!plans[i].measured_s && (!next || belief.fastest[i] > belief.fastest[*next])) next = i;
  }
  return next;
}

std::optional<std::size_t> best_trial(std::span<const TrialTime> plans, const TrialErrors& errors) {
  const TrialBelief belief = belief_of(plans, errors);
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!plans[i].measured_s || plans[i].failed) continue;
    if (!best || belief.fastest[i] > belief.fastest[*best]) best = i;
  }
  return best;
}

}  // namespace trivium::planner
