#include "calibration/validate/sweeps.h"

#include <algorithm>
#include <map>

#include "calibration/measurements/statistics.h"

namespace trivium::calibration {
namespace {

constexpr std::size_t kFewestPlans = 3;

constexpr int kOrderPlans = 5;         // fewer say little about an order
constexpr double kOrderSamples = 2;    // a device: below, plans differ in what they leave idle
constexpr double kOrderSpread = 0.05;  // plans closer than that are alike
constexpr double kTolerated = 0.01;    // regret that no repeats are asked for

constexpr double kWellUsed = 0.1;  // MFU
constexpr double kFits = 0.95;     // the probability that `trivium plan` asks for unless told

/// A plan of a sweep, at the median of its repeats.
struct Measured {
  double measured = 0, predicted = 0;  // s
  double mfu = 0, fit_probability = 1;
};

struct Repeats {
  std::vector<double> measured, predicted, mfu, fit_probability;
  double samples_per_device = 0;
  double spread() const { return *std::ranges::max_element(measured) / *std::ranges::min_element(measured) - 1; }
  Measured typical() const { return {median(measured), median(predicted), median(mfu), median(fit_probability)}; }
};

/// By prediction; of equal ones the slowest.
const Measured& fastest_predicted(const std::vector<Measured>& plans) {
  return *std::ranges::min_element(plans, [](const Measured& a, const Measured& b) {
    return a.predicted != b.predicted ? a.predicted < b.predicted : a.measured > b.measured;
  });
}

SweepOrder order_of(const std::vector<Measured>& plans) {
  const auto [best, worst] = std::ranges::minmax_element(plans, {}, &Measured::measured);
  std::vector<Measured> fitting;
  std::vector<Pair> pairs;
  for (const Measured& plan : plans) {
    pairs.push_back({plan.measured, plan.predicted});
    if (plan.fit_probability >= kFits) fitting.push_back(plan);
  }
  const Measured& of_fitting = fastest_predicted(fitting.empty() ? plans : fitting);
  return {static_cast<int>(plans.size()), fastest_predicted(plans).measured / best->measured - 1,
          of_fitting.measured / best->measured - 1, worst->measured / best->measured - 1, spearman(pairs)};
}

}  // namespace

bool Sweep::tells(const SweepOrder& order) const {
  return order.plans >= kOrderPlans && samples_per_device >= kOrderSamples && order.spread >= kOrderSpread;
}

double Sweep::tolerated() const { return std::max(kTolerated, repeat_spread); }

std::vector<Sweep> find_sweeps(std::span<const SweepCase> cases) {
  std::map<std::string, std::map<std::string, Repeats>> by_sweep;
  for (const SweepCase& each : cases) {
    Repeats& repeats = by_sweep[each.sweep][each.plan];
    repeats.measured.push_back(each.measured);
    repeats.predicted.push_back(each.predicted);
    repeats.mfu.push_back(each.mfu);
    repeats.fit_probability.push_back(each.fit_probability);
    repeats.samples_per_device = each.samples_per_device;
  }
  std::vector<Sweep> sweeps;
  for (const auto& [name, plans] : by_sweep) {
    if (plans.size() < kFewestPlans) continue;
    std::vector<Measured> all, well_used;
    for (const auto& [plan, repeats] : plans) {
      all.push_back(repeats.typical());
      if (all.back().mfu >= kWellUsed) well_used.push_back(all.back());
    }
    Sweep sweep;
    static_cast<SweepOrder&>(sweep) = order_of(all);
    sweep.name = name;
    if (well_used.size() >= kFewestPlans) sweep.well_used = order_of(well_used);
    for (const auto& [plan, repeats] : plans) {
      sweep.repeat_spread = std::max(sweep.repeat_spread, repeats.spread());
      sweep.samples_per_device = repeats.samples_per_device;
    }
    sweeps.push_back(sweep);
  }
  return sweeps;
}

}  // namespace trivium::calibration
