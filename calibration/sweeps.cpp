#include "calibration/sweeps.h"

#include <algorithm>
#include <map>

#include "calibration/statistics.h"

namespace trivium::calibration {
namespace {

constexpr std::size_t kFewestPlans = 3;

struct Repeats {
  std::vector<double> measured, predicted;
};

}  // namespace

std::vector<Sweep> find_sweeps(std::span<const SweepCase> cases) {
  std::map<std::string, std::map<std::string, Repeats>> by_sweep;
  for (const SweepCase& each : cases) {
    Repeats& repeats = by_sweep[each.sweep][each.plan];
    repeats.measured.push_back(each.measured);
    repeats.predicted.push_back(each.predicted);
  }
  std::vector<Sweep> sweeps;
  for (const auto& [name, plans] : by_sweep) {
    if (plans.size() < kFewestPlans) continue;
    std::vector<Pair> pairs;
    for (const auto& [plan, repeats] : plans) pairs.push_back({median(repeats.measured), median(repeats.predicted)});
    const auto chosen = std::min_element(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
      return a.predicted != b.predicted ? a.predicted < b.predicted : a.measured > b.measured;
    });
    const auto best = std::min_element(pairs.begin(), pairs.end(),
                                       [](const Pair& a, const Pair& b) { return a.measured < b.measured; });
    sweeps.push_back({name, static_cast<int>(plans.size()), chosen->measured / best->measured - 1});
  }
  return sweeps;
}

}  // namespace trivium::calibration
