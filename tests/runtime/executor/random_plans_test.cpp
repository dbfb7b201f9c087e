// Any plan that can be lowered runs on cores and computes what the unsplit run does. (What cannot be lowered is refused
// with a reason: tests/program/lower/check_supported_test.cpp.)
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "runtime/executor/train.h"
#include "tests/program/jobs.h"
#include "tests/runtime/executor/harness.h"

namespace trivium::runtime::testing {
namespace {

constexpr int kMostRanks = 8;
constexpr int kJobs = 60;

/// The same training by one rank. Micro-batches stay what they are: their gradients are what is rounded.
program::Job unsplit(program::Job job) {
  program::Plan alone;
  alone.micro_batch = job.plan.micro_batch;
  alone.precision = job.plan.precision;
  alone.attention = job.plan.attention;
  job.plan = alone;
  return job;
}

/// What may differ: rounding in another order of sums. 16 bits: tests/runtime/executor/precision_test.cpp.
double bound_of(program::DType type) {
  switch (type) {
    case program::DType::kFp64:
      return 1e-11;
    case program::DType::kFp32:
      return 1e-4;
    case program::DType::kBf16:
      return 2e-2;
    default:
      return 2e-3;
  }
}

program::Job next_job(program::RandomJobs& jobs) {
  for (;;) {
    program::Job job = jobs.next();
    if (job.plan.ranks() > kMostRanks) continue;
    job.training.optimizer.warmup_steps = 1;
    job.training.loss_scaling.initial = 1024;
    if (job.plan.zero_stage == 0 && job.plan.data > 1 && jobs.coin()) {
      job.plan.compression = program::Compression::kFp16;
    }
    if (job.plan.precision != program::DType::kFp64) job.plan.reduce_dtype = job.plan.precision;
    return job;
  }
}

TEST(RandomPlans, RunLikeTheUnsplitOne) {
  program::RandomJobs jobs(20);
  std::map<program::DType, int> ran;
  int dropped = 0;
  for (int i = 0; i < kJobs; ++i) {
    const program::Job job = next_job(jobs);
    SCOPED_TRACE(
        fmt::format("job {}: {} {} {}", i, program::summary(job.plan), name_of(job.plan.precision), job.plan.stack));
    ASSERT_EQ(cannot_run_on_cpu(ordered_program(job)), "");
    ++ran[job.plan.precision];
    dropped += job.training.dropout > 0 ? 1 : 0;
    const Trained split = run(job, 2), alone = run(unsplit(job), 2);
    ASSERT_EQ(split.refused, "");
    EXPECT_TRUE(split.replicas_agree);
    const double bound = job.plan.compression == program::Compression::kNone ? bound_of(job.plan.precision)
                                                                             : bound_of(program::DType::kFp16);
    for (std::size_t s = 0; s < alone.losses.size(); ++s) {
      EXPECT_NEAR(split.losses[s], alone.losses[s], bound * alone.losses[s]) << "step " << s;
    }
    if (bound == bound_of(program::DType::kFp64)) {
      std::string where;
      EXPECT_LE(difference(alone, split, where), bound) << where;
    }
  }
  for (const auto type : {program::DType::kFp64, program::DType::kFp32, program::DType::kBf16, program::DType::kFp16}) {
    EXPECT_GT(ran[type], 2) << name_of(type);
  }
  EXPECT_GT(dropped, 10);
}

TEST(RandomPlans, OfAdaptersRunLikeTheUnsplitOne) {
  constexpr int kAdapted = 25;
  program::RandomJobs jobs(21);
  for (int ran = 0, drawn = 0; ran < kAdapted; ++drawn) {
    ASSERT_LT(drawn, 40 * kAdapted);
    program::Job job = jobs.next();
    const bool attention = jobs.coin();
    job.training.lora = {.rank = 2, .alpha = 6, .fc1 = !attention, .fc2 = !attention};
    if (jobs.coin()) job.training.documents = {{3, 7}, {2, 1}};
    job.plan.precision = program::DType::kFp64;
    job.plan.reduce_dtype = job.plan.precision;
    if (job.plan.ranks() > kMostRanks || program::check(job)) continue;
    SCOPED_TRACE(fmt::format("job {}: {} {}", drawn, program::summary(job.plan), job.plan.stack));
    const Trained split = run(job, 2), alone = run(unsplit(job), 2);
    ASSERT_EQ(split.refused, "");
    EXPECT_TRUE(split.replicas_agree);
    std::string where;
    EXPECT_LE(difference(alone, split, where), bound_of(job.plan.precision)) << where;
    ++ran;
  }
}

TEST(RandomPlans, OfMuonRunLikeTheUnsplitOne) {
  constexpr int kStepped = 25;
  program::RandomJobs jobs(22);
  for (int ran = 0, drawn = 0; ran < kStepped; ++drawn) {
    ASSERT_LT(drawn, 40 * kStepped);
    program::Job job = jobs.next();
    job.training.optimizer.kind = program::Update::kMuon;
    job.plan.precision = program::DType::kFp64;
    job.plan.reduce_dtype = job.plan.precision;
    if (job.plan.ranks() > kMostRanks || program::check(job)) continue;
    SCOPED_TRACE(fmt::format("job {}: {} {}", drawn, program::summary(job.plan), job.plan.stack));
    const Trained split = run(job, 2), alone = run(unsplit(job), 2);
    ASSERT_EQ(split.refused, "");
    EXPECT_TRUE(split.replicas_agree);
    std::string where;
    EXPECT_LE(difference(alone, split, where), bound_of(job.plan.precision)) << where;
    ++ran;
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
