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

/// Shares of one problem after the other; keeps its memory. Not for use by several threads.
class MaxMin {
 public:
  /// The max-min fair rates of the demands, same order: no link carries more than its capacity, and every flow runs at
  /// its limit or crosses a full link on which no other flow is faster (Bertsekas and Gallager, Data Networks, §6.5.2).
  /// That allocation is unique. Units are the caller's. Valid until the next call.
  /// Cost: O(uses + rounds · (links + flows)), at most one round per flow.
  const std::vector<double>& solve(std::span<const double> capacity, std::span<const Demand> demands);

  const std::vector<double>& rates() const { return rates_; }
  /// By demand: the full link that holds it at its rate; -1: its limit does.
  const std::vector<std::int32_t>& held_by() const { return held_by_; }

 private:
  void list_flows(std::span<const Demand> demands);

  std::vector<double> rates_;
  std::vector<std::int32_t> held_by_;
  std::vector<double> left_, growing_;           // by link: capacity left, and how fast the open flows take it
  std::vector<std::int32_t> open_on_;            // by link: flows on it that still grow
  std::vector<std::int32_t> first_flow_, flow_;  // flows of link l: flow_[first_flow_[l]] … before first_flow_[l + 1]
  std::vector<std::int32_t> open_, links_;       // flows that still grow, links that they cross
  std::vector<char> stops_;                      // by flow: in this round
};

/// The rates alone, of one problem.
std::vector<double> max_min(std::span<const double> capacity, std::span<const Demand> demands);

}  // namespace trivium::simulator::sharing
