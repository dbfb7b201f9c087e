#include "simulator/sharing/max_min.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace trivium::simulator::sharing {

// Progressive filling: all flows grow together; whoever reaches its limit, or a link that is full, stops there.
const std::vector<double>& MaxMin::solve(std::span<const double> capacity, std::span<const Demand> demands) {
  constexpr double kTie = 1 + 1e-12;  // links that fill at the same level fill in one round
  rates_.assign(demands.size(), 0);
  held_by_.assign(demands.size(), -1);
  left_.assign(capacity.begin(), capacity.end());
  list_flows(demands);
  open_.resize(demands.size());
  std::iota(open_.begin(), open_.end(), 0);
  stops_.assign(demands.size(), 0);
  const auto full_at = [&](std::int32_t link) {
    return std::max(0.0, left_[static_cast<std::size_t>(link)]) / growing_[static_cast<std::size_t>(link)];
  };
  while (!open_.empty()) {
    double level = std::numeric_limits<double>::infinity();
    for (const std::int32_t f : open_) level = std::min(level, demands[static_cast<std::size_t>(f)].limit);
    std::erase_if(links_, [&](std::int32_t link) { return open_on_[static_cast<std::size_t>(link)] == 0; });
    for (const std::int32_t link : links_) level = std::min(level, full_at(link));
    for (const std::int32_t f : open_) {
      if (demands[static_cast<std::size_t>(f)].limit <= level * kTie) stops_[static_cast<std::size_t>(f)] = 1;
    }
    for (const std::int32_t link : links_) {
      if (full_at(link) > level * kTie) continue;
      const auto begin = first_flow_[static_cast<std::size_t>(link)],
                 end = first_flow_[static_cast<std::size_t>(link) + 1];
      for (std::int32_t i = begin; i < end; ++i) {
        const auto f = static_cast<std::size_t>(flow_[static_cast<std::size_t>(i)]);
        if (stops_[f] != 0) continue;
        stops_[f] = 1;
        held_by_[f] = link;
      }
    }
    std::erase_if(open_, [&](std::int32_t id) {
      const auto f = static_cast<std::size_t>(id);
      if (stops_[f] == 0) return false;
      rates_[f] = std::min(level, demands[f].limit);
      for (const Use& use : demands[f].uses) {
        const auto link = static_cast<std::size_t>(use.link);
        left_[link] -= use.amount * rates_[f];
        growing_[link] -= use.amount;
        --open_on_[link];
      }
      return true;
    });
  }
  return rates_;
}

void MaxMin::list_flows(std::span<const Demand> demands) {
  growing_.assign(left_.size(), 0);
  open_on_.assign(left_.size(), 0);
  for (const Demand& demand : demands) {
    for (const Use& use : demand.uses) {
      growing_[static_cast<std::size_t>(use.link)] += use.amount;
      ++open_on_[static_cast<std::size_t>(use.link)];
    }
  }
  first_flow_.assign(left_.size() + 1, 0);
  std::partial_sum(open_on_.begin(), open_on_.end(), first_flow_.begin() + 1);
  flow_.resize(static_cast<std::size_t>(first_flow_.back()));
  links_.clear();
  for (std::size_t link = 0; link < left_.size(); ++link) {
    if (open_on_[link] > 0) links_.push_back(static_cast<std::int32_t>(link));
    open_on_[link] = 0;
  }
  for (std::size_t f = 0; f < demands.size(); ++f) {
    for (const Use& use : demands[f].uses) {
      const auto link = static_cast<std::size_t>(use.link);
      flow_[static_cast<std::size_t>(first_flow_[link] + open_on_[link]++)] = static_cast<std::int32_t>(f);
    }
  }
}

std::vector<double> max_min(std::span<const double> capacity, std::span<const Demand> demands) {
  return MaxMin().solve(capacity, demands);
}

}  // namespace trivium::simulator::sharing
