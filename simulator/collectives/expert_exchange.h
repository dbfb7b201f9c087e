// How long rows take to experts of other ranks, and back, by who carries them (docs/explanation/cost-model.md,
// "Dispatch to experts").
#pragma once

#include <cstdint>

#include "simulator/collectives/collective_cost.h"

namespace trivium::simulator {

/// Tokens that each chose `choices` of `experts`, all as likely; without experts: rows that are sent one by one.
struct TokenRoutes {
  std::int64_t experts = 0, choices = 0;

  /// Of holders of `held` experts each, those that have one or more that a token chose.
  double holders_of_a_token(double held) const;
};

/// An exchange with the experts that sends a token once to every rank: `bytes` of all that a rank sends, its own rows
/// included. How the stack dispatches decides what that takes; it is kDeepEp or kHybrid.
base::Seconds expert_exchange_cost(base::Bytes bytes, const TokenRoutes& routes, const GroupPlacement& group,
                                   const hardware::Node& node, const program::StackTraits& stack);

}  // namespace trivium::simulator
