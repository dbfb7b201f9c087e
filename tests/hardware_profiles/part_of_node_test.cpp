#include "hardware_profiles/part_of_node.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "hardware_profiles/cluster_text.h"
#include "hardware_profiles/load.h"
#include "tests/input_error.h"

namespace trivium::hardware {
namespace {

// An NVL72 rack has 18 hosts of four; 64 devices are 16 of them, and 16 / 18 of what belongs to hosts.
TEST(PartOfNode, TakesWholeHostsOfARack) {
  const Node whole = load_node("gb200-nvl72");
  const Node part = with_devices(whole, 64);
  EXPECT_EQ(part.name, "gb200-nvl72");
  EXPECT_EQ(part.devices, 64);
  EXPECT_EQ(part.adapters, 64);
  EXPECT_EQ(part.host_devices, 4);
  EXPECT_EQ(part.devices_of_host(), 4);
  EXPECT_DOUBLE_EQ(part.price.value(), whole.price.value() * 16 / 18);
  EXPECT_DOUBLE_EQ(part.host_memory.value(), whole.host_memory.value() * 16 / 18);
  EXPECT_DOUBLE_EQ(part.overhead_power.value(), whole.overhead_power.value() * 16 / 18);
  EXPECT_EQ(part.allreduce_bus, whole.allreduce_bus);  // groups of up to eight
}

// A host stays whole: its memory and its price are the job's, whatever it uses.
TEST(PartOfNode, TakesSomeDevicesOfAHost) {
  const Node whole = load_node("dgx-h100-80gb");
  const Node part = with_devices(whole, 4);
  EXPECT_EQ(part.devices, 4);
  EXPECT_EQ(part.adapters, 4);
  EXPECT_EQ(part.devices_of_host(), 4);
  EXPECT_EQ(part.price, whole.price);
  EXPECT_EQ(part.host_memory, whole.host_memory);
  EXPECT_TRUE(whole.allreduce_bus.contains(8));
  EXPECT_EQ(part.allreduce_bus.rbegin()->first, 4);
  EXPECT_EQ(with_devices(load_node("gb200-nvl72"), 2).devices_of_host(), 2);  // of one host
}

TEST(PartOfNode, RefusesWhatNoHostsMakeUp) {
  EXPECT_EQ(input_error([] { with_devices(load_node("gb200-nvl72"), 6); }),
            "6 devices per node: \"gb200-nvl72\" has hosts of 4; take a multiple of that, or fewer");
  EXPECT_EQ(input_error([] { with_devices(load_node("gb200-nvl72"), 73); }),
            "73 devices per node: \"gb200-nvl72\" has 72");
}

TEST(PartOfNode, IsReadFromTextAndFromItsOwnJson) {
  const Cluster cluster = load_cluster("gb200-nvl72:4x64");
  EXPECT_EQ(cluster.name, "gb200-nvl72:4x64");
  EXPECT_EQ(cluster.devices(), 256);
  EXPECT_EQ(cluster_text(cluster.groups.front().node, 3), "gb200-nvl72:3x64");
  EXPECT_EQ(cluster_text(load_node("gb200-nvl72"), 3), "gb200-nvl72:3");
  EXPECT_EQ(with_devices_per_node(load_cluster("dgx-a100-80gb:2+dgx-h100:1"), 4).name,
            "dgx-a100-80gb:2x4+dgx-h100:1x4");
  EXPECT_EQ(load_cluster("dgx-a100-80gb:2x4+dgx-h100:1").devices(), 16);  // 2 x 4 + 8
  for (const int devices : {1, 2, 4}) {
    const Node part = with_devices(load_node("dgx-h100-80gb"), devices);
    const Node read = node_from_json(to_json(part), "part");
    EXPECT_EQ(read.devices, devices);
    EXPECT_EQ(to_json(read), to_json(part));
  }
}

TEST(PartOfNode, SaysWhatIsWrongWithTheText) {
  EXPECT_EQ(input_error([] { load_cluster("gb200-nvl72:4x"); }),
            "cluster \"gb200-nvl72:4x\": the devices of a node after \"gb200-nvl72:4x\" must be a whole number from 1 "
            "on, not \"\"");
  EXPECT_EQ(input_error([] { load_cluster("gb200-nvl72:x64"); }),
            "cluster \"gb200-nvl72:x64\": the number of nodes after \"gb200-nvl72:\" must be a whole number from 1 to "
            "1000000, not \"\"");
}

}  // namespace
}  // namespace trivium::hardware
