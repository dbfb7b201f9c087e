#include "simulator/sharing/max_min.h"

#include <algorithm>
#include <limits>

namespace trivium::simulator::sharing {

// Progressive filling: all flows grow together; whoever reaches its limit, or a link that is full, stops there.
std::vector<double> max_min(std::span<const double> capacity, std::span<const Demand> demands) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  constexpr double kTie = 1 + 1e-12;  // links that fill at the same level fill in one round
  std::vector<double> rates(demands.size(), 0), left(capacity.begin(), capacity.end()), growing(capacity.size(), 0);
  std::vector<std::size_t> open(demands.size());
  for (std::size_t i = 0; i < open.size(); ++i) open[i] = i;
  while (!open.empty()) {
    std::fill(growing.begin(), growing.end(), 0);
    double level = kNever;
    for (const std::size_t i : open) {
      level = std::min(level, demands[i].limit);
      for (const Use& use : demands[i].uses) growing[static_cast<std::size_t>(use.link)] += use.amount;
    }
    const auto full_at = [&](std::int32_t link) {
      return std::max(0.0, left[static_cast<std::size_t>(link)]) / growing[static_cast<std::size_t>(link)];
    };
    for (const std::size_t i : open) {
      for (const Use& use : demands[i].uses) level = std::min(level, full_at(use.link));
    }
    const auto stops = [&](std::size_t i) {
      if (demands[i].limit <= level * kTie) return true;
      return std::any_of(demands[i].uses.begin(), demands[i].uses.end(),
                         [&](const Use& use) { return full_at(use.link) <= level * kTie; });
    };
    const auto stopped = std::stable_partition(open.begin(), open.end(), [&](std::size_t i) { return !stops(i); });
    for (auto it = stopped; it != open.end(); ++it) {
      rates[*it] = std::min(level, demands[*it].limit);
      for (const Use& use : demands[*it].uses) left[static_cast<std::size_t>(use.link)] -= use.amount * rates[*it];
    }
    open.erase(stopped, open.end());
  }
  return rates;
}

}  // namespace trivium::simulator::sharing
