#include "runtime/microbench/profile.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/error.h"
#include "hardware_profiles/load.h"
#include "hardware_profiles/this_machine.h"
#include "program/lower/lower.h"
#include "program/verify/verify.h"
#include "runtime/cpu/backend.h"
#include "runtime/inproc/threads.h"
#include "runtime/microbench/all_reduce_times.h"
#include "runtime/microbench/bench_jobs.h"
#include "runtime/microbench/gpu_profile.h"
#include "runtime/microbench/host_link.h"
#include "runtime/microbench/kernel_times.h"
#include "tests/runtime/executor/asynchronous_backend.h"
#include "tests/runtime/executor/harness.h"

namespace trivium::runtime {
namespace {

TEST(BenchJobs, EveryProgramMayRun) {
  for (const bool quick : {true, false}) {
    for (const program::Program& program : microbench::bench_programs(quick)) {
      EXPECT_EQ(program::verify(program), std::vector<std::string>{}) << program.job.model.hidden;
    }
  }
}

TEST(BenchJobs, EveryProgramOfAGpuMayRun) {
  for (const bool quick : {true, false}) {
    int in_8_bits = 0;
    for (const program::Program& program : microbench::gpu_bench_programs(quick)) {
      EXPECT_EQ(program::verify(program), std::vector<std::string>{}) << program.job.model.hidden;
      if (program.job.plan.fp8 != program::Fp8::kNone) ++in_8_bits;
    }
    EXPECT_GT(in_8_bits, 0);
  }
}

/// A toy in 8 bits on cores, which emulate them, as they lie in the order in which they may run.
program::Program toy_in_8_bits() {
  program::Job job = testing::toy_job({});
  job.plan.fp8 = program::Fp8::kCurrent;
  auto program = std::get<program::Program>(program::lower(job));
  microbench::order_by_dependencies(program);
  return program;
}

// Products in 8 bits take other times than those whose rates a profile has; casts have rates of their own.
TEST(KernelTimes, LeaveOutProductsIn8Bits) {
  cpu::CpuBackend core;
  const program::Program program = toy_in_8_bits();
  const auto times = microbench::time_kernels_on(core, {program}, 1, nullptr);
  const auto kinds = [&](program::OpKind kind) {
    const auto found = times.shapes.find(program::RateKind{kind, false});
    return found == times.shapes.end() ? 0 : static_cast<int>(found->second.size());
  };
  EXPECT_GT(kinds(program::OpKind::kQuantize), 0);
  EXPECT_EQ(kinds(program::OpKind::kMatmulDgrad), 0);
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

/// A device whose copies are counted by what asked for them.
class CountedCopies final : public testing::AsynchronousBackend {
 public:
  void upload(program::Lane, std::byte*, const void*, std::int64_t) override { ++uploads; }
  void run(const KernelArguments& a, program::Lane lane) override {
    ++copies[a.op->kind];
    testing::AsynchronousBackend::run(a, lane);
  }
  std::map<program::OpKind, int> copies;
  int uploads = 0;
};

// An upload reads its source on the host, which cannot read a GPU's memory, and goes by way of other memory.
TEST(HostLink, IsTimedByTheCopiesOfOffloading) {
  CountedCopies device;
  microbench::time_host_link(device, std::int64_t{1} << 16);
  EXPECT_EQ(device.uploads, 0);
  EXPECT_GT(device.copies[program::OpKind::kFetch], 1);
  EXPECT_EQ(device.copies[program::OpKind::kFetch], device.copies[program::OpKind::kStore]);
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

// Of one GPU there are no groups, and nothing that says where their figures come from.
TEST(GpuProfile, LeavesOutWhatOneGpuDoesNotHave) {
  for (const char* const like :
       {"h200", "dgx-h100-80gb", "dgx-a100-80gb", "dgx1-v100-16gb", "dgx-b200", "gb200-nvl72"}) {
    const hardware::Node node = gpus_like(like, 1);
    EXPECT_TRUE(node.allreduce_bus.empty()) << like;
    EXPECT_EQ(hardware::node_from_json(hardware::to_json(node), "profile").devices, 1) << like;
  }
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
