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

struct Repeats {
  std::vector<double> measured, predicted;
  double samples_per_device = 0;
  double spread() const { return *std::ranges::max_element(measured) / *std::ranges::min_element(measured) - 1; }
};

}  // namespace

bool Sweep::tells_order() const {
  return plans >= kOrderPlans && samples_per_device >= kOrderSamples && spread >= kOrderSpread;
}

double Sweep::tolerated() const { return std::max(kTolerated, repeat_spread); }

std::vector<Sweep> find_sweeps(std::span<const SweepCase> cases) {
  std::map<std::string, std::map<std::string, Repeats>> by_sweep;
  for (const SweepCase& each : cases) {
    Repeats& repeats = by_sweep[each.sweep][each.plan];
    repeats.measured.push_back(each.measured);
    repeats.predicted.push_back(each.predicted);
    repeats.samples_per_device = each.samples_per_device;
  }
  std::vector<Sweep> sweeps;
  for (const auto& [name, plans] : by_sweep) {
    if (plans.size() < kFewestPlans) continue;
    std::vector<Pair> pairs;
    for (const auto& [plan, repeats] : plans) pairs.push_back({median(repeats.measured), median(repeats.predicted)});
    const auto chosen = std::min_element(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
      return a.predicted != b.predicted ? a.predicted < b.predicted : a.measured > b.measured;
    });
    const auto by_measured = [](const Pair& a, const Pair& b) { return a.measured < b.measured; };
    const auto [best, worst] = std::minmax_element(pairs.begin(), pairs.end(), by_measured);
    Sweep sweep;
    sweep.name = name;
    sweep.plans = static_cast<int>(plans.size());
    sweep.regret = chosen->measured / best->measured - 1;
    sweep.spread = worst->measured / best->measured - 1;
    sweep.spearman = spearman(pairs);
    for (const auto& [plan, repeats] : plans) {
      sweep.repeat_spread = std::max(sweep.repeat_spread, repeats.spread());
      sweep.samples_per_device = repeats.samples_per_device;
    }
    sweeps.push_back(sweep);
  }
  return sweeps;
}

}  // namespace trivium::calibration
