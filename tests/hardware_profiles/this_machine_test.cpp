#include "hardware_profiles/this_machine.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "fixtures.h"
#include "hardware_profiles/load.h"
#include "tests/input_error.h"

namespace trivium::hardware {
namespace {

/// Each case with a user's data folder of its own, so that a profile measured on this machine cannot leak in.
class ThisMachine : public testing::Test {
 protected:
  void SetUp() override { setenv("XDG_DATA_HOME", folder_.path().c_str(), 1); }
  void TearDown() override { unsetenv("XDG_DATA_HOME"); }

  TemporaryFolder folder_;
};

TEST_F(ThisMachine, IsKeptInTheUsersDataFolder) {
  EXPECT_EQ(this_machine_path(), folder_.path() / "trivium" / "profiles" / "this-machine.json");
}

TEST_F(ThisMachine, IsAGenericCpuBeforeItWasMeasured) {
  const Cluster cluster = load_cluster("this-machine");
  ASSERT_EQ(cluster.nodes(), 1);
  const Node& node = cluster.groups[0].node;
  EXPECT_EQ(node.devices, machine_cores());
  EXPECT_EQ(node.device.kind, DeviceKind::kCpu);
  EXPECT_EQ(node.topology, Topology::kSharedMemory);
  EXPECT_FALSE(node.asynchronous_lanes);
  EXPECT_EQ(node.host_memory, machine_memory());
  EXPECT_EQ(node.device.memory.value(), machine_memory().value() / machine_cores());
}

TEST_F(ThisMachine, IsItsMeasuredProfileAfterwards) {
  base::write_file_atomically(this_machine_path(), small_node().dump());
  EXPECT_EQ(load_cluster("this-machine").groups[0].node.name, "small");
}

TEST_F(ThisMachine, IsOneNode) {
  EXPECT_EQ(
      input_error([] { load_cluster("this-machine:2"); }),
      "cluster \"this-machine:2\": \"generic-cpu\" has no network adapters in its profile, so it can only be used "
      "as one node");
}

}  // namespace
}  // namespace trivium::hardware
