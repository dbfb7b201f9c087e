#include "simulator/collectives/collective_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/simulator/collectives/example_nodes.h"

namespace trivium::simulator {
namespace {

using program::OpKind;

constexpr GroupPlacement kEight{.ranks = 8, .nodes = 1, .ranks_per_node = 8, .sharing = 1};
const program::StackTraits& megatron() { return *program::find_stack("megatron"); }

// .67 · 60 us + 2 · 7/8 · 92 MB / (.92 · 200 GB/s) = 40.2 + 875 = 915.2 us.
TEST(CollectiveCost, OfAnAllReduceInANodeIsTheMeasuredCurveAsTrainingReachesIt) {
  EXPECT_NEAR(collective_cost(OpKind::kAllReduce, base::Bytes(92e6), kEight, fast_node(), megatron()).value(), 915.2e-6,
              1e-9);
}

// Half the bytes each, the latency each: 40.2 + 437.5 = 477.7 us.
TEST(CollectiveCost, OfTheHalvesOfAnAllReduceIsHalfItsBytesAndAllItsLatency) {
  for (const OpKind kind : {OpKind::kReduceScatter, OpKind::kAllGather}) {
    EXPECT_NEAR(collective_cost(kind, base::Bytes(92e6), kEight, fast_node(), megatron()).value(), 477.7e-6, 1e-9);
  }
}

// log2(8) = 3 times the skew.
TEST(CollectiveCost, WaitsForLateHosts) {
  hardware::Node late = fast_node();
  late.collective_skew = base::Seconds(100e-6);
  EXPECT_NEAR(collective_cost(OpKind::kAllReduce, base::Bytes(92e6), kEight, late, megatron()).value(), 1215.2e-6,
              1e-9);
}

TEST(CollectiveCost, OfOneRankIsNothing) {
  EXPECT_EQ(collective_cost(OpKind::kAllReduce, base::Bytes(1e9), {}, fast_node(), megatron()).value(), 0);
}

// 4 cores, 3.2 MB, 3.2 GB/s reached: 10 us + 4 · 1 ms for an all-reduce, 10 us + 1 ms for a gather.
TEST(CollectiveCost, OfCoresCountsWhatEveryRankReads) {
  const GroupPlacement four{.ranks = 4, .nodes = 1, .ranks_per_node = 4, .sharing = 1};
  const auto node = shared_memory_node();
  EXPECT_NEAR(collective_cost(OpKind::kAllReduce, base::Bytes(3.2e6), four, node, megatron()).value(), 4.01e-3, 1e-9);
  EXPECT_NEAR(collective_cost(OpKind::kAllGather, base::Bytes(3.2e6), four, node, megatron()).value(), 1.01e-3, 1e-9);
}

// Inside: 5 us + 27 MB / (.9 · 300 GB/s) = 105 us. Outside: 10 us + 2 MB / (.8 · 25 GB/s) = 110 us from one device's
// adapter, which 8 transfers of 8 devices do not share; 16 of them halve it: 210 us.
TEST(TransferCost, SharesTheAdaptersOfANode) {
  EXPECT_NEAR(transfer_cost(base::Bytes(27e6), true, 1, fast_node(), megatron()).value(), 105e-6, 1e-9);
  EXPECT_NEAR(transfer_cost(base::Bytes(2e6), false, 1, fast_node(), megatron()).value(), 110e-6, 1e-9);
  EXPECT_NEAR(transfer_cost(base::Bytes(2e6), false, 8, fast_node(), megatron()).value(), 110e-6, 1e-9);
  EXPECT_NEAR(transfer_cost(base::Bytes(2e6), false, 16, fast_node(), megatron()).value(), 210e-6, 1e-9);
}

TEST(CollectiveCost, IsFiniteAndGrowsWithTheBytes) {
  std::mt19937 random(11);
  std::uniform_int_distribution<int> per_node(1, 8), nodes(1, 300), kind(0, 2);
  std::uniform_real_distribution<double> exponent(0, 10.5);
  for (int trial = 0; trial < 500; ++trial) {
    GroupPlacement group{.ranks_per_node = per_node(random), .sharing = per_node(random)};
    group.nodes = nodes(random);
    group.ranks = group.nodes * group.ranks_per_node;
    const auto op = static_cast<OpKind>(static_cast<int>(OpKind::kAllReduce) + kind(random));
    const double bytes = std::pow(10.0, exponent(random));
    const double time = collective_cost(op, base::Bytes(bytes), group, fast_node(), megatron()).value();
    const double more = collective_cost(op, base::Bytes(2 * bytes), group, fast_node(), megatron()).value();
    ASSERT_TRUE(std::isfinite(time) && time >= 0);
    if (group.ranks > 1) {
      EXPECT_GT(more, time);
    }
    EXPECT_LE(more, 2 * time);  // latency is paid once
  }
}

// Every rank sends 7/8 of its 92 MB: 40.2 us + 7/8 · 92 MB / 184 GB/s = 40.2 + 437.5 us.
TEST(CollectiveCost, OfAnAllToAllInANodeIsWhatEveryRankSends) {
  EXPECT_NEAR(collective_cost(OpKind::kAllToAll, base::Bytes(92e6), kEight, fast_node(), megatron()).value(), 477.7e-6,
              1e-9);
}

// A ring shift is a transfer to the neighbour; over nodes the link between them carries one for every group.
TEST(CollectiveCost, OfARingShiftIsATransferOverTheSlowestLink) {
  const auto node = fast_node();
  const base::Bytes bytes(1e8);
  EXPECT_EQ(collective_cost(OpKind::kRingShift, bytes, kEight, node, megatron()).value(),
            transfer_cost(bytes, true, 1, node, megatron()).value());
  const GroupPlacement two{.ranks = 8, .nodes = 2, .ranks_per_node = 4, .sharing = 2};
  EXPECT_EQ(collective_cost(OpKind::kRingShift, bytes, two, node, megatron()).value(),
            transfer_cost(bytes, false, 2, node, megatron()).value());
}

}  // namespace
}  // namespace trivium::simulator
