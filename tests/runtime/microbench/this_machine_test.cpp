// This machine measured as `trivium profile --quick` does it: half a minute of kernels.
#include "hardware_profiles/this_machine.h"

#include <gtest/gtest.h>

#include <regex>

#include "hardware_profiles/load.h"
#include "runtime/microbench/profile.h"

namespace trivium::runtime {
namespace {

TEST(Profile, MeasuresANodeThatReadsBack) {
  int lines = 0;
  ProfileOptions options;
  options.quick = true;
  options.progress = [&](const std::string&) { ++lines; };
  const hardware::Node node = profile_this_machine(options);
  EXPECT_GT(lines, 3);
  EXPECT_EQ(node.name, "this-machine");
  EXPECT_EQ(node.devices, hardware::machine_cores());
  for (const char* kind : {"matmul",
                           "matmul_wgrad",
                           "attention",
                           "attention_backward",
                           "flash_attention",
                           "flash_attention_backward",
                           "norm",
                           "activation",
                           "adamw",
                           "rotary",
                           "loss",
                           "attention_block",
                           "attention_block_backward",
                           "split_kv",
                           "join_kv",
                           "pack_heads",
                           "unpack_tokens",
                           "route",
                           "dispatch",
                           "combine_backward",
                           "expert_matmul_wgrad"}) {
    ASSERT_TRUE(node.device.op_rates.contains(kind)) << kind;
    const hardware::OpRate& rate = node.device.op_rates.at(kind);
    EXPECT_GT(rate.overhead.value() + rate.seconds_per_flop + rate.seconds_per_byte, 0) << kind;
  }
  // Every figure that was measured tells its day, the versions and how far its repetitions lie apart.
  int measured = 0;
  for (const auto& [pointer, source] : node.sources) {
    if (!source.starts_with("trivium profile --quick on ")) continue;
    ++measured;
    EXPECT_TRUE(std::regex_search(source, std::regex(R"(on \d{4}-\d\d-\d\d: .*, Eigen 3\.\d+\.\d+, Linux )")))
        << source;
    EXPECT_TRUE(pointer.starts_with("/device/op_rates/") || source.find("; spread ") != std::string::npos) << pointer;
  }
  EXPECT_GT(measured, 25);
  EXPECT_GT(node.device.op_rates.at("matmul").spread, 0);
  EXPECT_GT(node.allreduce_latency.at(2 * node.devices).value(), 0);
  EXPECT_EQ(node.core_sharing.size(), 3);
  const hardware::Node read = hardware::node_from_json(hardware::to_json(node), "profile");
  EXPECT_EQ(read.device.op_rates.size(), node.device.op_rates.size());
  EXPECT_EQ(read.sources, node.sources);
  EXPECT_EQ(read.core_sharing, node.core_sharing);
}

}  // namespace
}  // namespace trivium::runtime
