#include "simulator/collectives/expert_exchange.h"

#include <gtest/gtest.h>

#include "tests/simulator/collectives/example_nodes.h"

namespace trivium::simulator {
namespace {

using program::ExpertDispatch;
using program::OpKind;

program::StackTraits dispatching(ExpertDispatch how) {
  program::StackTraits stack = *program::find_stack("megatron-bridge");
  stack.expert_dispatch = how;
  return stack;
}

double exchange(ExpertDispatch how, double bytes, const TokenRoutes& routes, const GroupPlacement& group,
                const hardware::Node& node = fast_node()) {
  return expert_exchange_cost(base::Bytes(bytes), routes, group, node, dispatching(how)).value();
}

// Two of eight experts: of the 28 pairs 15 leave out a rank that has two, 21 a rank that has one.
TEST(ExpertExchange, CountsWhoHasAnExpertOfAToken) {
  const TokenRoutes routes{8, 2};
  EXPECT_NEAR(routes.holders_of_a_token(2), 4 * (1 - 15.0 / 28), 1e-12);
  EXPECT_NEAR(routes.holders_of_a_token(1), 8 * (1 - 21.0 / 28), 1e-12);
  EXPECT_NEAR(routes.holders_of_a_token(8), 1, 1e-12);
}

// Two experts a token on eight ranks of one: 16 tokens in 5 rows each, two and three more, by 20 multiprocessors of
// 25 GB/s, where 2 rows cross a bus that is faster than that.
TEST(ExpertExchange, OfDeepEpTakesWhatItsMultiprocessorsMove) {
  hardware::Node node = fast_node();
  node.allreduce_bus = {{8, base::BytesPerSecond(1e12)}};
  const GroupPlacement group{.ranks = 8, .nodes = 1, .ranks_per_node = 8, .sharing = 1};
  const TokenRoutes routes{8, 2};
  const double rows = 16 * 2 * 1e6;
  const double wire =
      collective_cost(OpKind::kAllToAll, base::Bytes(rows), group, node, dispatching(ExpertDispatch::kHybrid)).value();
  EXPECT_DOUBLE_EQ(exchange(ExpertDispatch::kHybrid, rows, routes, group, node), wire);
  EXPECT_NEAR(exchange(ExpertDispatch::kDeepEp, rows, routes, group, node), 16 * 5 * 1e6 / 500e9, 1e-12);
  EXPECT_LT(wire, 16 * 5 * 1e6 / 500e9);
  node.allreduce_bus = {{8, base::BytesPerSecond(1e9)}};
  EXPECT_DOUBLE_EQ(exchange(ExpertDispatch::kDeepEp, rows, routes, group, node),
                   exchange(ExpertDispatch::kHybrid, rows, routes, group, node));
}

// 16 experts on 16 ranks of two nodes, all of them chosen: 16 rows a token, but two to its nodes. Half of those leave,
// 8 ranks' of 160 MB / 8 over 160 GB/s: 500 us with 40 of latency, where row by row it takes eight times as long; in
// the node seven of eight ranks are handed what arrived: 140 MB at .92 · 200 GB/s = 761 us.
TEST(ExpertExchange, OverNodesSendsATokenOnceToANode) {
  const GroupPlacement group{.ranks = 16, .nodes = 2, .ranks_per_node = 8, .sharing = 1};
  const TokenRoutes all{16, 16};
  EXPECT_NEAR(exchange(ExpertDispatch::kHybrid, 160e6, all, group), 40e-6 + 140e6 / 184e9, 1e-9);
  hardware::Node node = fast_node();
  node.allreduce_bus = {{8, base::BytesPerSecond(1e12)}};
  EXPECT_NEAR(exchange(ExpertDispatch::kHybrid, 160e6, all, group, node), 540e-6, 1e-9);
  EXPECT_NEAR(exchange(ExpertDispatch::kHybrid, 160e6, {16, 1}, group, node), 4040e-6, 1e-9);
}

}  // namespace
}  // namespace trivium::simulator
