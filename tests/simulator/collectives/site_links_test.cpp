#include "simulator/collectives/site_links.h"

#include <gtest/gtest.h>

#include "simulator/collectives/network.h"
#include "simulator/collectives/places.h"
#include "tests/simulator/collectives/example_nodes.h"

namespace trivium::simulator {
namespace {

using program::Group;
using program::OpKind;

const program::StackTraits& stack() { return *program::find_stack("megatron"); }

/// A link of 100 Gb/s at 80 %, 10 GB/s, and 1 ms.
hardware::SiteLink far_link(int a, int b) {
  return {a, b, {base::BytesPerSecond(12.5e9), base::Seconds(1e-3), 0.8}, "test"};
}

/// So many sites with a fast node of 8 devices each, neighbours joined by a far link.
hardware::Cluster sites(int count) {
  hardware::Cluster cluster;
  for (int site = 0; site < count; ++site) cluster.groups.push_back({fast_node(), 1, site});
  for (int site = 0; site + 1 < count; ++site) cluster.links.push_back(far_link(site, site + 1));
  return cluster;
}

program::Mesh mesh_of(int tensor, int pipeline, int data) {
  program::Plan plan;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  plan.data = data;
  return program::Mesh(plan);
}

GroupPlacement only_placement(const program::Mesh& mesh, const hardware::Cluster& cluster, Group group) {
  const auto placements = placements_of(mesh, cluster, group, 0);
  EXPECT_EQ(placements.size(), 1u);
  return placements.front();
}

// Four replicas of four tensor ranks: each of the four data groups has two ranks at each site. Each has a quarter of
// the 10 GB/s; of an exchange 2 · 2 / 4 = 1 buffer goes each way. A way around the four ranks crosses the link twice.
TEST(SiteLinks, AreSharedByTheGroupsThatCrossThem) {
  const GroupPlacement group = only_placement(mesh_of(4, 1, 4), sites(2), Group::kData);
  EXPECT_NEAR(group.between.bandwidth.value(), 2.5e9, 1);
  EXPECT_EQ(group.between.latency.value(), 1e-3);
  EXPECT_EQ(group.around.value(), 2e-3);
  EXPECT_NEAR(group.exchange.value(), 2.5e9, 1);
}

// Two ranks, one at each site: one step from each to the other.
TEST(SiteLinks, AreCrossedOnceByTwoRanks) {
  const GroupPlacement group = only_placement(mesh_of(8, 1, 2), sites(2), Group::kData);
  EXPECT_NEAR(group.between.bandwidth.value(), 10e9 / 8, 1);
  EXPECT_EQ(group.around.value(), 1e-3);
}

TEST(SiteLinks, LeaveGroupsOfOneSiteAlone) {
  EXPECT_EQ(only_placement(mesh_of(8, 1, 2), sites(2), Group::kTensor),
            (GroupPlacement{.ranks = 8, .nodes = 1, .ranks_per_node = 8, .sharing = 1}));
}

// A ring over three sites in a row goes 0 -> 1 -> 2 -> 0; between 2 and 0 nothing is said, so its adapters are all. An
// exchange of 24 ranks sends 8 · 8 / 24 buffers over each link.
TEST(SiteLinks, OfThreeSitesAreCrossedInTurn) {
  const GroupPlacement group = only_placement(mesh_of(24, 1, 1), sites(3), Group::kTensor);
  EXPECT_NEAR(group.between.bandwidth.value(), 10e9, 1);
  EXPECT_EQ(group.around.value(), 2e-3);
  EXPECT_NEAR(group.exchange.value(), 10e9 / (64.0 / 24), 1);
}

TEST(SiteLinks, ThatAreNotSaidCostNothing) {
  hardware::Cluster cluster = sites(2);
  cluster.links.clear();
  EXPECT_EQ(only_placement(mesh_of(4, 1, 4), cluster, Group::kData),
            (GroupPlacement{.ranks = 4, .nodes = 2, .ranks_per_node = 2, .sharing = 4}));
}

// All eight pairs of a stage and the next cross at once.
TEST(SiteLinks, AreSharedByTheTransfersOfAStage) {
  const TransferPlacement between = transfer_placement(mesh_of(8, 2, 1), sites(2), 0, 1);
  EXPECT_FALSE(between.same_node);
  EXPECT_NEAR(between.between.bandwidth.value(), 10e9 / 8, 1);
  EXPECT_EQ(between.between.latency.value(), 1e-3);
}

/// Two nodes of 8 ranks at two sites, whose ring has the far link for itself.
GroupPlacement two_sites() {
  GroupPlacement group{.ranks = 16, .nodes = 2, .ranks_per_node = 8, .sharing = 1};
  group.between = {base::BytesPerSecond(10e9), base::Seconds(1e-3)};
  group.around = base::Seconds(2e-3);
  group.exchange = base::BytesPerSecond(2.5e9);
  return group;
}

double time_of(OpKind kind) {
  return network_collective(kind, base::Bytes(160e6), two_sites(), fast_node(), base::BytesPerSecond(184e9), stack())
      .value();
}

// 30 us + 15 · 10 us, once around the link 2 ms, 15/16 · 160 MB / 10 GB/s = 15 ms (the adapters carry 160 GB/s).
TEST(SiteLinks, HoldUpAGather) { EXPECT_NEAR(time_of(OpKind::kAllGather), 17.18e-3, 1e-9); }

// The ring takes twice that but for the 30 us, 34.33 ms. The tree: 30 us + 2 · 10 us + 14 · 4 us, up and down 2 ms,
// 2 · 1/2 · 160 MB / 10 GB/s = 16 ms, and 2 · 15/16 · 160 MB / 184 GB/s = 1.630435 ms inside.
TEST(SiteLinks, HoldUpAnAllReduce) { EXPECT_NEAR(time_of(OpKind::kAllReduce), 19.736435e-3, 1e-9); }

// 30 us + 10 us + 1 ms, and 4 of the 160 MB buffers each way: 64 ms.
TEST(SiteLinks, HoldUpAnAllToAll) { EXPECT_NEAR(time_of(OpKind::kAllToAll), 65.04e-3, 1e-9); }

// 10 us + 1 ms + 100 MB / 1.25 GB/s = 81.01 ms, where the adapter alone (20 GB/s) would take 5.01.
TEST(SiteLinks, HoldUpATransfer) {
  const SiteShare share{base::BytesPerSecond(1.25e9), base::Seconds(1e-3)};
  EXPECT_NEAR(transfer_cost(base::Bytes(100e6), false, 8, fast_node(), stack(), share).value(), 81.01e-3, 1e-9);
  EXPECT_NEAR(transfer_cost(base::Bytes(100e6), false, 8, fast_node(), stack()).value(), 5.01e-3, 1e-9);
}

TEST(SiteLinks, FasterThanTheAdaptersLeaveThemTheirPace) {
  const SiteShare share{base::BytesPerSecond(1e12), base::Seconds(0)};
  EXPECT_EQ(transfer_cost(base::Bytes(100e6), false, 8, fast_node(), stack(), share),
            transfer_cost(base::Bytes(100e6), false, 8, fast_node(), stack()));
}

}  // namespace
}  // namespace trivium::simulator
