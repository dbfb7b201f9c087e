#include "simulator/replay/disturbance.h"

#include <fmt/format.h>

#include <utility>

namespace trivium::simulator {

std::optional<base::Error> unknown_rank(const Disturbance& disturbance, int ranks) {
  for (const auto& [option, factors] :
       {std::pair("slow device", &disturbance.slow_devices), std::pair("slow link", &disturbance.slow_links)}) {
    for (const auto& [rank, factor] : *factors) {
      if (rank >= 0 && rank < ranks) continue;
      return base::Error{base::ErrorKind::kUsage,
                         fmt::format("{} {}: the plan has ranks 0 to {}", option, rank, ranks - 1)};
    }
  }
  return std::nullopt;
}

Variation variation_of(const Disturbance& disturbance, const ReplayTopology& topology, std::uint64_t seed) {
  Variation variation;
  variation.jitter = disturbance.jitter;
  variation.seed = seed;
  const auto fill = [&](std::vector<double>& factors, const std::map<int, double>& slow) {
    if (slow.empty()) return;
    for (const std::int32_t rank : topology.rank) {
      const auto found = slow.find(rank);
      factors.push_back(found == slow.end() ? 1.0 : found->second);
    }
  };
  fill(variation.device, disturbance.slow_devices);
  fill(variation.link, disturbance.slow_links);
  return variation;
}

}  // namespace trivium::simulator
