#include "simulator/collectives/network.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/simulator/collectives/example_nodes.h"

namespace trivium::simulator {
namespace {

using program::OpKind;

const program::StackTraits& stack_named(const char* name) { return *program::find_stack(name); }

// 8 adapters of .8 · 25 = 20 GB/s. A group with one rank a node drives one adapter, also when alone; 8 such groups have
// one each; a group with all 8 ranks has 160 GB/s.
TEST(NetworkShare, DividesTheAdaptersAmongTheGroupsOfANode) {
  EXPECT_NEAR(network_share(fast_node(), 1, 8).value(), 20e9, 1);
  EXPECT_NEAR(network_share(fast_node(), 1, 1).value(), 20e9, 1);
  EXPECT_NEAR(network_share(fast_node(), 8, 1).value(), 160e9, 1);
  hardware::Node four = fast_node();
  four.adapters = 4;
  EXPECT_NEAR(network_share(four, 1, 8).value(), 10e9, 1);
}

// Gather of 160 MB over 2 nodes of 8: 30 us + 15 · 10 us + 15/16 · 160 MB / 160 GB/s = 30 + 150 + 937.5 = 1117.5 us.
TEST(NetworkCollective, OfAGatherIsARingWithALatencyPerRank) {
  const GroupPlacement group{.ranks = 16, .nodes = 2, .ranks_per_node = 8, .sharing = 1};
  const auto inside = base::BytesPerSecond(184e9);
  const auto time = [&](const char* stack) {
    return network_collective(OpKind::kAllGather, base::Bytes(160e6), group, fast_node(), inside, stack_named(stack))
        .value();
  };
  EXPECT_NEAR(time("deepspeed-zero3"), 1117.5e-6, 1e-9);
  // The 2021 stack reached .20 of the adapters where others reach .8: 30 + 150 + 937.5 · 4 = 3930 us.
  EXPECT_NEAR(time("deepspeed-zero3-2021"), 3930e-6, 1e-7);
}

// 160 MB on each of 16 ranks of 2 nodes: half of a node's 8 · 160 MB leave it over 160 GB/s, 30 + 10 + 4000 us; 7/16 of
// a rank's stay inside, 70 MB / 184 GB/s = 380 us, meanwhile.
TEST(NetworkCollective, OfAnAllToAllSendsWhatLeavesTheNodeInOneHop) {
  const GroupPlacement group{.ranks = 16, .nodes = 2, .ranks_per_node = 8, .sharing = 1};
  EXPECT_NEAR(network_collective(OpKind::kAllToAll, base::Bytes(160e6), group, fast_node(), base::BytesPerSecond(184e9),
                                 stack_named("megatron"))
                  .value(),
              4040e-6, 1e-9);
}

// ZeRO-3 on 512 GPUs, a gather of next to nothing: 30 us + 511 · 14 us = 7.18 ms, what rules these runs.
TEST(NetworkCollective, HasALatencyThatGrowsWithTheRanks) {
  hardware::Node node = fast_node();
  node.network.latency = base::Seconds(14e-6);
  const GroupPlacement group{.ranks = 512, .nodes = 64, .ranks_per_node = 8, .sharing = 1};
  EXPECT_NEAR(network_collective(OpKind::kAllGather, base::Bytes(1), group, node, base::BytesPerSecond(184e9),
                                 stack_named("deepspeed-zero3"))
                  .value(),
              7.184e-3, 1e-6);
}

// Tensor 16 over two nodes of 4 adapters, 50 MB: 30 us + 2 · 14 us + 14 · 4 us, then 50 MB / (100 GB/s · .78 · .82) =
// 781.7 us between the nodes and 2 · 15/16 · 50 MB / 211 GB/s = 444.3 us inside: 1340.0 us, a bus of .7 of the line
// rate (vTrain: .8). The ring would take 30 us + 30 · 14 us + 2 · 15/16 · 50 MB / 78 GB/s = 1651.9 us.
TEST(NetworkCollective, OfAnAllReduceOverTwoNodesAddsWhatItDoesInsideThem) {
  hardware::Node node = fast_node();
  node.adapters = 4;
  node.network.efficiency = 0.78;
  node.network.latency = base::Seconds(14e-6);
  const GroupPlacement group{.ranks = 16, .nodes = 2, .ranks_per_node = 8, .sharing = 1};
  const double time = network_collective(OpKind::kAllReduce, base::Bytes(50e6), group, node,
                                         base::BytesPerSecond(211e9), stack_named("megatron"))
                          .value();
  EXPECT_NEAR(time, 1340.0e-6, 0.1e-6);
}

// 64 replicas, one rank a node and 8 groups: ring 30 us + 126 · 10 us + 126/64 · S / 20 GB/s; tree 30 us + 12 · 10 us +
// 126/64 · S / 16.4 GB/s. Small: the tree, 150 us. 1 GB: the ring, 99.73 ms against 120.2 ms.
TEST(NetworkCollective, OfAnAllReduceTakesTheFasterOfRingAndTree) {
  const GroupPlacement group{.ranks = 64, .nodes = 64, .ranks_per_node = 1, .sharing = 8};
  const auto inside = base::BytesPerSecond(std::numeric_limits<double>::infinity());
  const auto time = [&](double bytes) {
    return network_collective(OpKind::kAllReduce, base::Bytes(bytes), group, fast_node(), inside,
                              stack_named("megatron"))
        .value();
  };
  EXPECT_NEAR(time(1), 150e-6, 1e-8);
  EXPECT_NEAR(time(1e9), 99.73e-3, 0.01e-3);
}

}  // namespace
}  // namespace trivium::simulator
