#include "hardware_profiles/price_text.h"

#include <gtest/gtest.h>

#include "hardware_profiles/load.h"

namespace trivium::hardware {
namespace {

Cluster two_kinds() {
  Cluster cluster = load_cluster("dgx-a100-80gb:2+jean-zay-v100-32gb:3+dgx-a100-80gb:1");
  for (NodeGroup& group : cluster.groups) {
    group.node.price = base::DollarsPerHour(group.node.devices);
    group.node.sources["/price"] = "list of " + group.node.name;
  }
  return cluster;
}

TEST(PriceText, SaysWhereThePriceComesFrom) {
  Cluster cluster = two_kinds();
  cluster.groups.resize(1);
  EXPECT_EQ(price_text(cluster), "8 $/h a node: list of dgx-a100-80gb");
}

// 64 of 72 devices of a rack at 1,025 $/h.
TEST(PriceText, ThePriceOfAPartOfANodeIsRoundedToCents) {
  Cluster cluster = two_kinds();
  cluster.groups.resize(1);
  cluster.groups[0].node.price = base::DollarsPerHour(1025.0 * 64 / 72);
  EXPECT_EQ(price_text(cluster), "911.11 $/h a node: list of dgx-a100-80gb");
}

TEST(PriceText, NamesUnlikeNodesOnce) {
  EXPECT_EQ(price_text(two_kinds()),
            "8 $/h a dgx-a100-80gb: list of dgx-a100-80gb; 4 $/h a jean-zay-v100-32gb: list of jean-zay-v100-32gb");
}

TEST(PriceText, IsEmptyWhereANodeHasNone) {
  Cluster cluster = two_kinds();
  cluster.groups[1].node.price = base::DollarsPerHour(0);
  EXPECT_EQ(price_text(cluster), "");
}

// Eight and four devices at 2.5 $/h.
TEST(DevicePrice, IsThatOfEveryDeviceOfANode) {
  Cluster cluster = two_kinds();
  set_device_price(cluster, base::DollarsPerHour(2.5), "--price");
  EXPECT_EQ(price_text(cluster), "20 $/h a dgx-a100-80gb: --price; 10 $/h a jean-zay-v100-32gb: --price");
}

}  // namespace
}  // namespace trivium::hardware
