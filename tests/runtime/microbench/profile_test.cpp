#include "runtime/microbench/profile.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "hardware_profiles/load.h"
#include "hardware_profiles/this_machine.h"
#include "program/verify/verify.h"
#include "runtime/cpu/backend.h"
#include "runtime/inproc/threads.h"
#include "runtime/microbench/all_reduce_times.h"
#include "runtime/microbench/bench_jobs.h"
#include "runtime/microbench/gpu_profile.h"
#include "runtime/microbench/host_link.h"

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
  for (const char* kind : {"matmul", "matmul_wgrad", "attention", "norm", "activation", "adamw", "rotary", "loss",
                           "attention_block", "attention_block_backward", "split_kv", "join_kv", "pack_heads",
                           "unpack_tokens", "route", "dispatch", "combine_backward", "expert_matmul_wgrad"}) {
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

TEST(Profile, DoubtsWhatABusyMachineMeasured) {
  hardware::Node node;
  EXPECT_EQ(doubt_about(node), "");
  node.device.op_rates["matmul"].spread = .23;
  EXPECT_EQ(doubt_about(node), "");
  node.device.op_rates["matmul"].spread = 1.25;
  EXPECT_NE(doubt_about(node).find("differ by 125 % from one time to the next, as on a busy machine"),
            std::string::npos);
}

TEST(HostLink, IsTheRateOfCopies) {
  cpu::CpuBackend core;
  const double rate = microbench::time_host_link(core, std::int64_t{4} << 20).rate.value();
  EXPECT_GT(rate, 1e6);  // B/s: a core copies faster than that, and no memory as fast as the second
  EXPECT_LT(rate, 1e13);
}

// Three ranks: the group of the first two, and all.
TEST(AllReduces, AreTimedByGroupSize) {
  constexpr int kRanks = 3;
  auto communicators = inproc::make_communicators(kRanks);
  std::array<microbench::AllReduceTimes, kRanks> times;
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        cpu::CpuBackend core;
        times[rank] = microbench::time_all_reduces(*communicators[rank], core, 1 << 16);
      });
    }
  }
  const auto sizes_of = [](const auto& by_size) {
    std::vector<int> sizes;
    for (const auto& [size, value] : by_size) {
      sizes.push_back(size);
      EXPECT_GT(value.value(), 0) << size;
    }
    return sizes;
  };
  EXPECT_EQ(sizes_of(times[0].bus), (std::vector<int>{2, 3}));
  EXPECT_EQ(sizes_of(times[0].latency), (std::vector<int>{2, 3}));
  EXPECT_EQ(sizes_of(times[2].bus), std::vector<int>{3});
  EXPECT_EQ(times[0].bus.at(3).value(), times[2].bus.at(3).value());  // the slowest counts for all
}

// A node of fewer GPUs than the profile it is like still reads back.
TEST(GpuProfile, LeavesLargerGroupsOut) {
  const hardware::Node whole = hardware::load_node("dgx-a100-80gb");
  ASSERT_GT(whole.allreduce_bus.rbegin()->first, 4);
  const hardware::Node node = gpus_like("dgx-a100-80gb", 4);
  EXPECT_LE(node.allreduce_bus.rbegin()->first, 4);
  EXPECT_EQ(hardware::node_from_json(hardware::to_json(node), "profile").devices, 4);
}

TEST(Profile, RefusesMoreRanksThanCores) {
  ProfileOptions options;
  options.ranks = hardware::machine_cores() + 1;
  EXPECT_THROW(profile_this_machine(options), base::Failure);
  options.ranks = -1;
  EXPECT_THROW(profile_this_machine(options), base::Failure);
}

}  // namespace
}  // namespace trivium::runtime
