#include "program/verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Verify, IsCleanOnRandomPlans) {
  RandomJobs jobs(1);
  for (int i = 0; i < 300; ++i) {
    const Job job = jobs.next();
    ASSERT_THAT(verify(lowered(job)), IsEmpty()) << summary(job.plan) << " " << name_of(job.plan.schedule) << " of "
                                                 << job.model.layers << " layers, batch " << job.training.global_batch;
  }
}

TEST(Verify, IsCleanOnDeepInterleavedPipelines) {
  for (const int pipeline : {2, 3, 4, 6}) {
    for (const int virtual_stages : {2, 4}) {
      Job job = tiny_job(48);
      job.plan.pipeline = pipeline, job.plan.virtual_stages = virtual_stages,
      job.plan.schedule = Schedule::kInterleaved;
      job.training.global_batch = 4 * pipeline;
      EXPECT_THAT(verify(lowered(job)), IsEmpty()) << pipeline << " x " << virtual_stages;
    }
  }
}

TEST(Verify, ComparesARanksMemoryWithTheDevices) {
  Job job = tiny_job();
  job.plan.pipeline = 2;
  const Program program = lowered(job);
  const std::int64_t first = program.roles[0].total_bytes(), last = program.roles[1].total_bytes();
  ASSERT_GT(first, last);  // one frame more, and the position embedding
  EXPECT_THAT(verify(program, first), IsEmpty());
  EXPECT_THAT(verify(program, first - 1),
              ElementsAre("stage 0 needs " + std::to_string(first) + " bytes of " + std::to_string(first - 1)));
  EXPECT_EQ(verify(program, last - 1).size(), 2u);
}

/// Two stages with the host order of their tasks as given.
Program ordered(const std::vector<std::vector<std::size_t>>& orders) {
  Job job = tiny_job();
  job.training.global_batch = 2;
  job.plan.pipeline = 2;
  Program program = lowered(job);
  for (Role& role : program.roles) {
    for (const std::size_t task : orders[static_cast<std::size_t>(role.stage)]) {
      const auto segments = program.body_of(role.tasks[task]).segments.size();
      for (std::size_t s = 0; s < segments; ++s) {
        role.order.push_back({static_cast<std::int32_t>(task), static_cast<std::int16_t>(s)});
      }
    }
  }
  return program;
}

// Stage 0: 0 F0, 1 send, 2 F1, 3 send, 4 recv, 5 B0, 6 recv, 7 B1. Stage 1: 0 recv, 1 F0, 2 B0, 3 send, 4 recv, 5 F1, 6
// B1, 7 send. Stage 1 has one frame: it takes micro-batch 1 once the gradient of 0 has left, so stage 0 receives before
// it sends.
Program ordered() { return ordered({{0, 1, 2, 4, 3, 5, 6, 7, 8, 9, 10, 11}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}); }

TEST(VerifyHostOrder, OfTasksAsTheyWereLoweredDeadlocks) {
  const auto problems =
      verify(ordered({{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}));
  EXPECT_THAT(problems,
              ElementsAre("25 segments can never start, 2 of them wait for each other: stage 0 task 4 (recv chunk 0 "
                          "micro-batch 0); stage 0 task 3 (send chunk 0 micro-batch 1);"));
}

TEST(VerifyHostOrder, IsCleanWhereItHoldsEverySegmentAfterWhatItWaitsFor) { EXPECT_THAT(verify(ordered()), IsEmpty()); }

TEST(VerifyHostOrder, MissesNoSegment) {
  // Stage 1: two forwards and two backwards of 3 segments (2 layers, head), 4 transfers, reduction, norm, its
  // reduction, and an optimizer of 3 buckets: 12 + 4 + 3 + 3 = 22.
  Program program = ordered();
  program.roles[1].order.pop_back();
  EXPECT_THAT(verify(program), ElementsAre("stage 1: the host order has 21 of 22 segments"));
}

TEST(VerifyHostOrder, IssuesNoSegmentTwice) {
  Program program = ordered();
  program.roles[0].order.push_back({0, 1});
  EXPECT_THAT(verify(program), ElementsAre("stage 0: task 0 segment 1 is issued twice"));
}

TEST(VerifyHostOrder, IssuesNothingBeforeWhatItWaitsFor) {
  // Stage 1 begins with task 0 (receive) and task 1 (forward): swapped, the forward's first segment comes too early.
  Program program = ordered();
  std::swap(program.roles[1].order[0], program.roles[1].order[1]);
  const auto problems = verify(program);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems[0], "stage 1: task 1 is issued before task 0 that it waits for");
}

}  // namespace
}  // namespace trivium::program
