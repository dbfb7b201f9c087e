// Replicas with micro-batches of different sizes: a role for every stage and size, and what they share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "program/ir/text.h"
#include "program/verify/verify.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Two stages, three replicas that take 2, 2 and 1 samples: 10 are two micro-batches of each.
Job unlike_job() {
  Job job = tiny_job();
  job.plan.pipeline = 2;
  job.plan.data = 3;
  job.plan.replica_micro_batch = {2, 2, 1};
  job.training.global_batch = 10;
  return job;
}

std::string rule_of(const Job& job) {
  const auto no = check(job);
  return !no ? "" : no->rule;
}

TEST(ReplicaKinds, EveryStageHasARoleForEverySize) {
  const Program program = lowered(unlike_job());
  EXPECT_EQ(program.micro_batches, 2);
  EXPECT_THAT(program.replica_kinds, ElementsAre(0, 0, 1));
  ASSERT_THAT(program.roles, SizeIs(4));
  for (int kind = 0; kind < 2; ++kind) {
    for (int stage = 0; stage < 2; ++stage) {
      const Role& role = program.roles[static_cast<std::size_t>(kind * 2 + stage)];
      EXPECT_EQ(role.stage, stage);
      EXPECT_EQ(role.replica_kind, kind);
      EXPECT_EQ(role.first_replica, kind == 0 ? 0 : 2);
      EXPECT_EQ(&program.role_of(program.representative(role)), &role);
    }
  }
  for (int rank = 0; rank < program.mesh.size(); ++rank) {
    const Coordinates at = program.mesh.coordinates(rank);
    EXPECT_EQ(program.role_index(rank), (at.data == 2 ? 2 : 0) + at.pipeline);
  }
  EXPECT_THAT(verify(program), IsEmpty());
}

// A micro-batch of half the samples has half the activations and tokens; what training keeps is the same.
TEST(ReplicaKinds, RolesDifferInWhatMicroBatchesHold) {
  const Program program = lowered(unlike_job());
  for (std::size_t stage = 0; stage < 2; ++stage) {
    const Role &two = program.roles[stage], &one = program.roles[stage + 2];
    const auto bytes = [](const Role& role, Space space) { return role.bytes[static_cast<std::size_t>(space)]; };
    for (const Space space : {Space::kParameter, Space::kGradient, Space::kOptimizer, Space::kScalar}) {
      EXPECT_EQ(bytes(two, space), bytes(one, space)) << name_of(space);
    }
    EXPECT_GT(bytes(two, Space::kFrame), 1.9 * static_cast<double>(bytes(one, Space::kFrame)));
    EXPECT_EQ(bytes(two, Space::kTokens), 2 * bytes(one, Space::kTokens));
    ASSERT_EQ(two.tasks.size(), one.tasks.size());
    for (std::size_t t = 0; t < two.tasks.size(); ++t) {
      EXPECT_EQ(describe(two.tasks[t]), describe(one.tasks[t]));
      EXPECT_EQ(program.body_of(two.tasks[t]).ops.size(), program.body_of(one.tasks[t]).ops.size());
    }
  }
}

TEST(ReplicaKinds, TransfersOfEveryKindHaveTheirOwnNumbers) {
  const Program program = lowered(unlike_job());
  std::set<int> numbers;
  for (const Role& role : program.roles) {
    for (const Task& task : role.tasks) {
      if (task.kind != TaskKind::kSend) continue;
      EXPECT_TRUE(numbers.insert(task.transfer).second);
    }
  }
  EXPECT_THAT(numbers, SizeIs(2 * 2 * 2));  // kinds, directions, micro-batches
}

TEST(ReplicaKinds, EqualSizesAreOneKind) {
  Job job = unlike_job();
  job.plan.replica_micro_batch = {2, 2, 2};
  job.training.global_batch = 12;
  const Program program = lowered(job);
  EXPECT_THAT(program.roles, SizeIs(2));
  EXPECT_THAT(program.replica_kinds, IsEmpty());
  EXPECT_EQ(program.job.plan.micro_batch, 2);
}

TEST(ReplicaKinds, WhatTheyCannotShareIsRefusedByName) {
  Job job = unlike_job();
  job.plan.replica_micro_batch = {2, 1};
  EXPECT_EQ(rule_of(job), "replica-micro-batch-count");
  job.plan.replica_micro_batch = {2, 2, 0};
  EXPECT_EQ(rule_of(job), "replica-micro-batch-in-range");
  job.plan.replica_micro_batch = {2, 2, 1};
  job.training.global_batch = 12;
  EXPECT_EQ(rule_of(job), "batch-divides");
  job = unlike_job();
  job.plan.data = 4;
  job.plan.replica_micro_batch = {2, 1, 1, 1};
  job.plan.zero_stage = 3;
  EXPECT_EQ(rule_of(job), "");
  job.plan.shard_group = 2;
  EXPECT_EQ(rule_of(job), "replica_micro_batch-supported");
  job.plan.shard_group = 0;
  job.plan.expert = 2;
  EXPECT_EQ(rule_of(job), "replica_micro_batch-supported");
}

TEST(ReplicaKinds, ThePlanIsNamedByRuns) { EXPECT_THAT(summary(unlike_job().plan), HasSubstr(" mb2x2,1x1 ")); }

// What one kind reduces the other must: the verifier follows groups of replicas across roles.
TEST(ReplicaKinds, AReductionThatOneKindLeavesOutIsFound) {
  Program program = lowered(unlike_job());
  Role& role = program.roles[2];
  for (Task& task : role.tasks) {
    if (task.kind != TaskKind::kReduceGradients) continue;
    for (Op& op : program.bodies[static_cast<std::size_t>(task.body)].ops) {
      if (op.group == Group::kData) op.elements -= 1;
    }
    break;
  }
  EXPECT_THAT(verify(program),
              ::testing::Contains(HasSubstr("stage 0 of replica 0 and stage 0 of replica 2 disagree")));
}

}  // namespace
}  // namespace trivium::program
