// Max-min fair shares of capacities: a solver that knows nothing of what flows, or where.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace trivium::simulator::sharing {

/// A flow of rate r takes `amount` · r of a link's capacity.
struct Use {
  std::int32_t link = 0;
  double amount = 1;  ///< > 0
};

/// What a flow wants: no more than `limit`, over all of `uses` (each link at most once) at the same time.
struct Demand {
  double limit = 0;
  std::span<const Use> uses;
};

/// The max-min fair rates of the demands, same order: no link carries more than its capacity, and every flow runs at
/// its limit or crosses a full link on which no other flow is faster (Bertsekas and Gallager, Data Networks, §6.5.2).
/// That allocation is unique. Units are the caller's. Cost: O(rounds · uses), at most one round per flow.
std::vector<double> max_min(std::span<const double> capacity, std::span<const Demand> demands);

}  // namespace trivium::simulator::sharing
