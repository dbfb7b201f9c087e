#include "simulator/cost/copy_cost.h"

#include <gtest/gtest.h>

#include "hardware_profiles/load.h"

namespace trivium::simulator {
namespace {

hardware::Node node() {
  hardware::Node node;
  node.devices = 8;
  node.host_link = base::BytesPerSecond(20e9);
  node.disk = base::BytesPerSecond(8e9);
  return node;
}

// 2 GB over 20 GB/s.
TEST(CopyCost, ToTheHostIsTheLinkOfTheDevice) {
  EXPECT_DOUBLE_EQ(copy_cost(base::Bytes(2e9), false, 8, node()).value(), 0.1);
  EXPECT_DOUBLE_EQ(copy_cost(base::Bytes(2e9), false, 1, node()).value(), 0.1);
}

// Two neighbours on one PCIe switch copy 2 GB each over its 20 GB/s; a device that is used alone has all of it.
TEST(CopyCost, NeighboursShareTheLinkOfTheirSwitch) {
  hardware::Node pairs = node();
  pairs.devices_per_host_link = 2;
  EXPECT_DOUBLE_EQ(copy_cost(base::Bytes(2e9), false, 8, pairs).value(), 0.2);
  EXPECT_DOUBLE_EQ(copy_cost(base::Bytes(2e9), false, 1, pairs).value(), 0.1);
}

// Eight devices write 2 GB each at 8 GB/s together; one alone is held up by the drives' 8 GB/s as well.
TEST(CopyCost, ToDiskTheDevicesOfANodeShareItsDrives) {
  EXPECT_DOUBLE_EQ(copy_cost(base::Bytes(2e9), true, 8, node()).value(), 2.0);
  EXPECT_DOUBLE_EQ(copy_cost(base::Bytes(2e9), true, 1, node()).value(), 0.25);
}

TEST(CopyCost, DrivesFasterThanTheLinkDoNotHelp) {
  hardware::Node fast = node();
  fast.disk = base::BytesPerSecond(400e9);
  EXPECT_DOUBLE_EQ(copy_cost(base::Bytes(2e9), true, 8, fast).value(), 0.1);
}

}  // namespace
}  // namespace trivium::simulator
