// The classic mistakes of distributed training, made on purpose: the comparison with the unsplit run must see each of
// them.
#include <gtest/gtest.h>

#include "tests/runtime/executor/harness.h"
#include "tests/support/split_plan.h"

namespace trivium::runtime::testing {
namespace {

using program::Op;
using program::OpKind;
using support::split_plan;

constexpr double kTolerance = 1e-11;  // of the equivalence tests

// How far a spoiled run of the plan is from the unspoiled unsplit run.
double distance(const program::Plan& plan, const std::function<void(program::Program&)>& spoil, std::string& where) {
  const Trained unsplit = run(toy_job(program::Plan{}));
  const Trained spoiled = run(toy_job(plan), 3, spoil);
  EXPECT_EQ(spoiled.refused, "");
  return difference(unsplit, spoiled, where);
}

// Makes every op that `chosen` picks do nothing: collectives of no elements.
std::function<void(program::Program&)> silence(bool (*chosen)(const Op&)) {
  return [chosen](program::Program& program) {
    int silenced = 0;
    for (program::Body& body : program.bodies) {
      for (Op& op : body.ops) {
        if (!chosen(op)) continue;
        op.elements = 0;
        ++silenced;
      }
    }
    ASSERT_GT(silenced, 0);
  };
}

TEST(Mutation, ReplicasThatAreNotAveragedAreSeen) {
  std::string where;
  // Dropping the 1/2 of two replicas is the same as counting half the global batch in the loss weight.
  const auto drop = [](program::Program& program) { program.settings.batch.samples /= 2; };
  EXPECT_GT(distance(split_plan(1, 1, 2), drop, where), kTolerance) << where;
}

TEST(Mutation, ASkippedReductionOfTheTiedEmbeddingIsSeen) {
  std::string where;
  const auto skip =
      silence([](const Op& op) { return op.kind == OpKind::kAllReduce && op.group == program::Group::kEmbedding; });
  EXPECT_GT(distance(split_plan(1, 2, 1), skip, where), kTolerance) << where;
}

TEST(Mutation, ASkippedReductionOverReplicasIsSeen) {
  std::string where;
  const auto skip =
      silence([](const Op& op) { return op.kind == OpKind::kAllReduce && op.group == program::Group::kData; });
  EXPECT_GT(distance(split_plan(1, 1, 2), skip, where), kTolerance) << where;
}

TEST(Mutation, AReplicaCountedTwiceInTheGradientNormIsSeen) {
  std::string where;
  const auto count_twice = [](program::Program& program) {
    for (program::ChunkTemplate& kind : program.kinds) {
      for (program::Parameter& p : kind.parameters) p.tied_copy = false;  // the last stage's copy of the embedding
    }
  };
  EXPECT_GT(distance(split_plan(1, 2, 1), count_twice, where), kTolerance) << where;
}

TEST(Mutation, UnreducedGradientsOfReplicasUnderSequenceParallelAreSeen) {
  std::string where;
  program::Plan plan = split_plan(2, 1, 1);
  plan.sequence_parallel = true;
  const auto skip = silence([](const Op& op) {
    return op.kind == OpKind::kAllReduce && op.group == program::Group::kTensor && op.lane == program::Lane::kData;
  });
  EXPECT_GT(distance(plan, skip, where), kTolerance) << where;
}

TEST(Mutation, ReceivedPartsThatNobodyGathersAreSeen) {
  std::string where;
  program::Plan plan = split_plan(2, 2, 1);
  plan.scatter_gather = program::ScatterGather::kOn;
  const auto skip =
      silence([](const Op& op) { return op.group == program::Group::kTensor && op.lane == program::Lane::kPipeline; });
  EXPECT_GT(distance(plan, skip, where), kTolerance) << where;
}

// The verifier refuses such a program; here the run itself must differ, so that neither guards alone.
TEST(Mutation, SwappedReceivesAreSeen) {
  std::string where;
  const auto swap = [](program::Program& program) {
    program::Task* first = nullptr;
    for (program::Task& task : program.roles[1].tasks) {
      if (task.kind != program::TaskKind::kRecv) continue;
      if (first == nullptr) {
        first = &task;
      } else {
        std::swap(first->transfer, task.transfer);
        return;
      }
    }
  };
  program::Plan plan = split_plan(1, 2, 1);
  plan.schedule = program::Schedule::kGpipe;  // all forwards first: the swap cannot deadlock
  EXPECT_GT(distance(plan, swap, where), kTolerance) << where;
}

}  // namespace
}  // namespace trivium::runtime::testing
