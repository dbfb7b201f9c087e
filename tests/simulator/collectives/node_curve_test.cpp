#include "simulator/collectives/node_curve.h"

#include <gtest/gtest.h>

namespace trivium::simulator {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

hardware::Node node_of(std::map<int, double> bus, std::map<int, double> latency) {
  hardware::Node node;
  node.devices = 8;
  for (const auto& [ranks, value] : bus) node.allreduce_bus[ranks] = base::BytesPerSecond(value * 1e9);
  for (const auto& [ranks, value] : latency) node.allreduce_latency[ranks] = base::Seconds(value * 1e-6);
  return node;
}

struct MeasuredReduce {
  double mebibytes;
  double microseconds;
};

void expect_curve(const hardware::Node& node, int ranks, std::initializer_list<MeasuredReduce> rows, double tolerance) {
  for (const MeasuredReduce& row : rows) {
    const double time = node_curve(node, ranks).all_reduce(base::Bytes(row.mebibytes * kMiB), ranks).value() * 1e6;
    EXPECT_NEAR(time / row.microseconds, 1, tolerance) << ranks << " ranks, " << row.mebibytes << " MiB";
  }
}

// nccl-tests of the vTrain authors, all-reduce out of place; an affine curve follows eight GPUs within 12 %, and four
// within 13 % (the worst is 8 MiB, where NCCL changes its protocol).
TEST(NodeCurve, FollowsTheMeasuredA100) {
  const auto node = node_of({{2, 197.28}, {4, 221.86}, {8, 229.35}}, {{2, 39}, {4, 46}, {8, 72}});
  expect_curve(node, 8, {{8, 134.3}, {64, 579.9}, {256, 2162.3}, {512, 4191.5}, {1024, 8193.0}}, 0.12);
  expect_curve(node, 4, {{8, 116.8}, {64, 543.8}, {256, 1929.0}, {512, 3720.0}, {1024, 7259.4}}, 0.13);
  expect_curve(node, 2, {{8, 86.9}, {64, 404.7}, {256, 1455.8}, {512, 2838.4}, {1024, 5442.8}}, 0.12);
}

TEST(NodeCurve, FollowsTheMeasuredCubeMeshOfV100) {
  const auto node = node_of({{2, 22.55}, {4, 85.36}, {8, 134.51}}, {{2, 23}, {4, 52}, {8, 79}});
  expect_curve(node, 8, {{16, 273.8}, {64, 911.3}, {256, 3527.4}, {512, 7004.4}, {1024, 13969.0}}, 0.12);
  expect_curve(node, 4, {{8, 177.8}, {64, 1202.1}, {256, 4714.0}, {1024, 18869.0}}, 0.13);
  expect_curve(node, 2, {{8, 392.5}, {64, 2998.7}, {256, 11915.0}, {1024, 47610.0}}, 0.12);
  // Known omission: up to 12 MiB NCCL stays on its low-latency protocol here, and its larger 16 MiB takes less time.
  expect_curve(node, 8, {{8, 237.9}, {12, 300.5}}, 0.23);
}

// Halfway in log2 between 4 and 8 (n = 5.657) lies the mean; 5 is log2(5/4) = .32193 of the way: 100 + .32193 · 100.
TEST(NodeCurve, InterpolatesOverTheLogarithmOfTheGroup) {
  const auto node = node_of({{4, 100}, {8, 200}}, {{4, 40}, {8, 80}});
  EXPECT_NEAR(node_curve(node, 5).bus.value(), 132.193e9, 1e6);
  EXPECT_NEAR(node_curve(node, 5).latency.value(), 52.877e-6, 1e-9);
  EXPECT_EQ(node_curve(node, 2).bus.value(), 100e9);
  EXPECT_EQ(node_curve(node, 16).bus.value(), 200e9);
  // Beyond the table the ring's steps grow from 7 to 15: 80 · 15/7.
  EXPECT_NEAR(node_curve(node, 16).latency.value(), 171.43e-6, 1e-8);
}

// Without tables: the link at its efficiency, and 2 (n - 1) steps of its latency.
TEST(NodeCurve, FallsBackToTheLink) {
  hardware::Node node;
  node.intra = {.bandwidth = base::BytesPerSecond(300e9), .latency = base::Seconds(5e-6), .efficiency = 0.8};
  EXPECT_NEAR(node_curve(node, 8).bus.value(), 240e9, 1);
  EXPECT_NEAR(node_curve(node, 8).latency.value(), 70e-6, 1e-12);
}

}  // namespace
}  // namespace trivium::simulator
