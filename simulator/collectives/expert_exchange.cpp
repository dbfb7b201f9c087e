#include "simulator/collectives/expert_exchange.h"

#include <algorithm>

namespace trivium::simulator {
namespace {

// Multiprocessors that Megatron-Core gives to DeepEP (moe_deepep_num_sms), and what each moves: for every token a row
// for each rank that gets it and three more (aiconfigurator's measurements of combines on H100, H200 and B200: 25 to 29
// GB/s where hidden sizes are 4,096 and 7,168, 2 and 8 experts a token; Megatron-Core's layers on H100: 25).
constexpr double kDeepEpProcessors = 20, kDeepEpRows = 3;
constexpr base::BytesPerSecond kDeepEpMoves(25e9);

}  // namespace

double TokenRoutes::holders_of_a_token(double held) const {
  const auto all = static_cast<double>(experts), elsewhere = all - held;
  double none = 1;  // of a holder's experts are chosen
  for (std::int64_t i = 0; i < choices; ++i)
    none *= std::max(0.0, elsewhere - static_cast<double>(i)) / (all - static_cast<double>(i));
  return all / held * (1 - none);
}

base::Seconds expert_exchange_cost(base::Bytes bytes, const TokenRoutes& routes, const GroupPlacement& group,
                                   const hardware::Node& node, const program::StackTraits& stack) {
  const double of_rank = static_cast<double>(routes.experts) / std::max(1, group.ranks);
  const double ranks = routes.holders_of_a_token(of_rank);
  const double nodes = group.nodes > 1 ? routes.holders_of_a_token(of_rank * group.ranks_per_node) : ranks;
  const base::Seconds wire =
      collective_cost(program::OpKind::kAllToAll, bytes, group, node, stack, std::min(1.0, nodes / ranks));
  if (stack.expert_dispatch != program::ExpertDispatch::kDeepEp) return wire;
  return std::max(wire, bytes * (1 + kDeepEpRows / ranks) / (kDeepEpMoves * kDeepEpProcessors));
}

}  // namespace trivium::simulator
