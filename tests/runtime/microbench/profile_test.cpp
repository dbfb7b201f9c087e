#include "runtime/microbench/profile.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "edge/error.h"
#include "hardware_profiles/load.h"
#include "hardware_profiles/this_machine.h"
#include "program/verify.h"
#include "runtime/microbench/bench_jobs.h"

namespace trivium::runtime {
namespace {

TEST(BenchJobs, EveryProgramMayRun) {
  for (const bool quick : {true, false}) {
    for (const program::Program& program : microbench::bench_programs(quick)) {
      EXPECT_EQ(program::verify(program), std::vector<std::string>{}) << program.job.model.hidden;
    }
  }
}

TEST(Profile, MeasuresANodeThatReadsBack) {
  int lines = 0;
  ProfileOptions options;
  options.quick = true;
  options.progress = [&](const std::string&) { ++lines; };
  const hardware::Node node = profile_this_machine(options);
  EXPECT_GT(lines, 3);
  EXPECT_EQ(node.name, "this-machine");
  EXPECT_EQ(node.devices, hardware::machine_cores());
  for (const char* kind : {"matmul", "matmul_wgrad", "attention", "norm", "activation", "adamw", "rotary", "loss"}) {
    ASSERT_TRUE(node.device.op_rates.contains(kind)) << kind;
    const hardware::OpRate& rate = node.device.op_rates.at(kind);
    EXPECT_GT(rate.overhead.value() + rate.seconds_per_flop + rate.seconds_per_byte, 0) << kind;
  }
  const hardware::Node read = hardware::node_from_json(hardware::to_json(node), "profile");
  EXPECT_EQ(read.device.op_rates.size(), node.device.op_rates.size());
  EXPECT_EQ(read.sources, node.sources);
}

TEST(Profile, RefusesMoreRanksThanCores) {
  ProfileOptions options;
  options.ranks = hardware::machine_cores() + 1;
  EXPECT_THROW(profile_this_machine(options), edge::Failure);
  options.ranks = -1;
  EXPECT_THROW(profile_this_machine(options), edge::Failure);
}

}  // namespace
}  // namespace trivium::runtime
