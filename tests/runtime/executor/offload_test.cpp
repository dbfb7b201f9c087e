// Offloaded runs: state and activations really leave their arenas and come back, and nothing else changes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <tuple>

#include "base/error.h"
#include "runtime/executor/disk_arena.h"
#include "tests/runtime/executor/equivalence.h"
#include "tests/support/split_plan.h"

namespace trivium::runtime::testing {
namespace {

using program::Plan;
using program::Recompute;
using program::Schedule;
using program::Storage;
using support::split_plan;

// The same plan with everything on the device.
void expect_bitwise(const Plan& plan) {
  Plan kept = plan;
  kept.offload = {};
  expect_equivalent(run(toy_job(kept)), toy_job(plan), Asked::kBits, "the same, not offloaded");
}

TEST(OffloadRun, OptimizerStateOnHostAndDiskChangesNothingAtAll) {
  for (const Storage storage : {Storage::kHost, Storage::kDisk}) {
    for (const auto& [tensor, pipeline, data] : {std::tuple{1, 1, 1}, {2, 2, 1}, {1, 2, 2}}) {
      Plan plan = split_plan(tensor, pipeline, data);
      plan.offload.optimizer = storage;
      plan.zero_stage = data > 1 ? 1 : 0;
      expect_bitwise(plan);
    }
  }
}

TEST(OffloadRun, ActivationsOnHostAndDiskChangeNothingAtAll) {
  for (const Storage storage : {Storage::kHost, Storage::kDisk}) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective}) {
      for (const int pipeline : {1, 2, 4}) {
        Plan plan = split_plan(1, pipeline, 1);
        plan.recompute = recompute;
        plan.offload.activations = storage;
        expect_bitwise(plan);
      }
    }
  }
}

TEST(OffloadRun, EverySchedule) {
  for (const Schedule schedule : {Schedule::kSequential, Schedule::kGpipe, Schedule::kInterleaved}) {
    Plan plan = split_plan(1, 2, 1);
    plan.schedule = schedule;
    plan.virtual_stages = schedule == Schedule::kInterleaved ? 2 : 1;
    plan.offload = {Storage::kHost, Storage::kNone, Storage::kNone, Storage::kHost};
    expect_bitwise(plan);
  }
}

TEST(OffloadRun, BothWithTensorSequenceAndDataParallel) {
  Plan plan = split_plan(2, 2, 2);
  plan.sequence_parallel = true;
  plan.zero_stage = 1;
  plan.overlap.gradient_reduction = true;
  plan.offload = {Storage::kDisk, Storage::kNone, Storage::kNone, Storage::kHost};
  expect_bitwise(plan);
}

TEST(OffloadRun, StateOfShardedParametersAndGradients) {
  for (const int zero : {2, 3}) {
    Plan plan = split_plan(1, 1, 4);
    plan.zero_stage = zero;
    plan.offload.optimizer = Storage::kHost;
    expect_bitwise(plan);
  }
}

// Layers with and without experts take turns, or two dense ones come before each mixture: rooms of different sizes.
TEST(OffloadRun, ActivationsOfMixturesInSomeLayersChangeNothingAtAll) {
  for (const int every : {1, 2, 3}) {
    for (const auto& [expert, pipeline, context] : {std::tuple{1, 1, 1}, {2, 2, 1}, {1, 2, 2}}) {
      Plan plan = split_plan(1, pipeline, expert);
      plan.expert = expert;
      plan.context = context;
      if (context > 1) plan.attention = program::Attention::kFlash;
      program::Job job = toy_job(plan);
      job.model.linear_bias = false;
      job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = every, .capacity_factor = 0.75};
      const Trained kept = run(job);
      job.plan.offload.activations = Storage::kHost;
      expect_equivalent(kept, job, Asked::kBits, "the same, not offloaded");
    }
  }
}

TEST(OffloadRun, GradientsOnHostAndDiskChangeNothingAtAll) {
  for (const Storage storage : {Storage::kHost, Storage::kDisk}) {
    for (const auto& [tensor, pipeline, data] : {std::tuple{1, 1, 1}, {2, 2, 1}, {1, 2, 2}}) {
      for (const bool overlap : {false, true}) {
        Plan plan = split_plan(tensor, pipeline, data);
        plan.offload.gradients = storage;
        plan.zero_stage = data > 1 && overlap ? 1 : 0;
        plan.overlap.gradient_reduction = overlap;
        expect_bitwise(plan);
      }
    }
  }
}

TEST(OffloadRun, GradientsUnderEverySchedule) {
  for (const Schedule schedule :
       {Schedule::kSequential, Schedule::kGpipe, Schedule::kInterleaved, Schedule::kZeroBubble}) {
    Plan plan = split_plan(1, 2, 2);
    plan.schedule = schedule;
    plan.virtual_stages = schedule == Schedule::kInterleaved ? 2 : 1;
    plan.offload.gradients = Storage::kHost;
    plan.overlap.gradient_reduction = true;
    plan.bucket_bytes = schedule == Schedule::kGpipe ? 100'000 : 0;
    expect_bitwise(plan);
  }
}

TEST(OffloadRun, GradientsKeptAsShards) {
  for (const int zero : {2, 3}) {
    for (const int shard_group : {0, 2}) {
      Plan plan = split_plan(1, 1, 4);
      plan.zero_stage = zero;
      plan.shard_group = shard_group;
      plan.overlap.gradient_reduction = shard_group == 0;
      plan.offload.gradients = Storage::kHost;
      expect_bitwise(plan);
    }
  }
  Plan stages = split_plan(1, 2, 2);  // the tied embedding stays whole among shards
  stages.zero_stage = 2;
  stages.offload.gradients = Storage::kDisk;
  expect_bitwise(stages);
}

TEST(OffloadRun, GradientsWithAllElseThatCanBeAway) {
  Plan plan = split_plan(2, 2, 2);
  plan.sequence_parallel = true;
  plan.zero_stage = 1;
  plan.overlap.gradient_reduction = plan.overlap.parameter_gather = true;
  plan.offload = {Storage::kHost, Storage::kHost, Storage::kNone, Storage::kHost};
  expect_bitwise(plan);
  Plan compressed = split_plan(1, 2, 2);
  compressed.compression = program::Compression::kTopK;
  compressed.offload.gradients = Storage::kHost;
  expect_bitwise(compressed);
}

TEST(OffloadRun, GradientsInSixteenBits) {
  for (const auto precision : {program::DType::kBf16, program::DType::kFp16}) {
    program::Job job = toy_job(split_plan(1, 2, 2));
    job.plan.precision = precision;
    const Trained kept = run(job);
    job.plan.offload.gradients = Storage::kHost;
    expect_equivalent(kept, job, Asked::kBits, "the same, not offloaded");
  }
}

TEST(OffloadRun, ParametersOnHostAndDiskChangeNothingAtAll) {
  for (const Storage storage : {Storage::kHost, Storage::kDisk}) {
    for (const auto& [tensor, pipeline, data] : {std::tuple{1, 1, 1}, {2, 2, 1}, {1, 1, 4}, {1, 2, 2}}) {
      for (const bool overlap : {false, true}) {
        Plan plan = split_plan(tensor, pipeline, data);
        plan.zero_stage = 3;
        plan.overlap.gradient_reduction = plan.overlap.parameter_gather = overlap;
        plan.bucket_bytes = overlap && data == 4 ? 100'000 : 0;
        plan.offload.parameters = storage;
        expect_bitwise(plan);
      }
    }
  }
}

TEST(OffloadRun, ParametersUnderEverySchedule) {
  for (const Schedule schedule :
       {Schedule::kSequential, Schedule::kGpipe, Schedule::kInterleaved, Schedule::kZeroBubble}) {
    Plan plan = split_plan(1, 2, 2);
    plan.schedule = schedule;
    plan.virtual_stages = schedule == Schedule::kInterleaved ? 2 : 1;
    plan.zero_stage = 3;
    plan.overlap.parameter_gather = true;
    plan.offload.parameters = Storage::kHost;
    expect_bitwise(plan);
  }
}

TEST(OffloadRun, ParametersWithAllElseThatCanBeAway) {
  for (const int data : {1, 2}) {
    Plan plan = split_plan(2, 2, data);
    plan.sequence_parallel = true;
    plan.zero_stage = 3;
    plan.overlap.gradient_reduction = plan.overlap.parameter_gather = true;
    plan.offload = {Storage::kHost, Storage::kHost, Storage::kHost, Storage::kHost};
    expect_bitwise(plan);
  }
  Plan groups = split_plan(1, 1, 4);
  groups.zero_stage = 3;
  groups.shard_group = 2;
  groups.offload = {Storage::kHost, Storage::kHost, Storage::kDisk, Storage::kNone};
  expect_bitwise(groups);
}

TEST(OffloadRun, ParametersInSixteenBits) {
  for (const auto precision : {program::DType::kBf16, program::DType::kFp16}) {
    for (const int data : {1, 2}) {
      program::Job job = toy_job(split_plan(1, 2, data));
      job.plan.zero_stage = 3;
      job.plan.precision = precision;
      const Trained kept = run(job);
      job.plan.offload.parameters = Storage::kHost;
      expect_equivalent(kept, job, Asked::kBits, "the same, not offloaded");
    }
  }
}

// Without its copy back a stage computes with the parameters of the step before.
TEST(OffloadRun, ALostCopyOfParametersIsSeen) {
  Plan plan = split_plan(1, 2, 1);
  plan.zero_stage = 3;
  plan.offload.parameters = Storage::kHost;
  const Trained right = run(toy_job(plan));
  const Trained wrong = run(toy_job(plan), 3, [](program::Program& program) {
    for (program::Body& body : program.bodies) {
      if (body.name == "store parameters of bucket 1") body.ops[0].elements = 0;
    }
  });
  std::string where;
  EXPECT_FALSE(bitwise_equal(right, wrong, where));
}

// Without its copy back a bucket has the gradients of the last micro-batch alone.
TEST(OffloadRun, ALostCopyOfGradientsIsSeen) {
  Plan plan = split_plan(1, 2, 1);
  plan.offload.gradients = Storage::kHost;
  const Trained right = run(toy_job(plan));
  const Trained wrong = run(toy_job(plan), 3, [](program::Program& program) {
    for (program::Body& body : program.bodies) {
      if (body.name == "store gradients of bucket 2") body.ops[0].elements = 0;
    }
  });
  std::string where;
  EXPECT_FALSE(bitwise_equal(right, wrong, where));
}

// Without its copy back a stage steps with the moments of another bucket.
TEST(OffloadRun, ALostCopyIsSeen) {
  Plan plan = split_plan(1, 2, 1);
  plan.offload.optimizer = Storage::kHost;
  const Trained right = run(toy_job(plan));
  const Trained wrong = run(toy_job(plan), 3, [](program::Program& program) {
    for (program::Body& body : program.bodies) {
      if (body.name == "store state of bucket 1") body.ops[0].elements = 0;
    }
  });
  std::string where;
  EXPECT_FALSE(bitwise_equal(right, wrong, where));
}

TEST(DiskArena, IsZeroedAndItsOwn) {
  DiskArena a(5000), b(5000);
  for (std::size_t i = 0; i < 5000; ++i) ASSERT_EQ(a.begin()[i], std::byte{0});
  a.begin()[4999] = std::byte{7};
  EXPECT_EQ(b.begin()[4999], std::byte{0});
}

TEST(DiskArena, NamesTheFolderThatCannotHoldIt) {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", "/nowhere", 1);
  try {
    DiskArena arena(64);
    FAIL() << "a folder that is not there was used";
  } catch (const base::Failure& failure) {
    EXPECT_EQ(failure.error().kind, base::ErrorKind::kRuntime);
    EXPECT_NE(failure.error().message.find("/nowhere: cannot hold 64 bytes offloaded to disk"), std::string::npos);
  }
  kept.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", kept.c_str(), 1);
}

}  // namespace
}  // namespace trivium::runtime::testing
