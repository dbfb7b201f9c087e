// ZeRO 2 and 3, hybrid shard groups and overlap: sharded runs compute what the unsplit run computes.
#include <gtest/gtest.h>

#include <tuple>

#include "program/lower/lower.h"
#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

const Trained& unsplit(bool tied) {
  const auto make = [](bool with_tied) {
    program::Job job = toy_job(program::Plan{});
    job.model.tied_embeddings = with_tied;
    return run(job);
  };
  static const Trained kTied = make(true), kUntied = make(false);
  return tied ? kTied : kUntied;
}

program::Plan sharded(int stage, int tensor, int pipeline, int data) {
  program::Plan plan;
  plan.zero_stage = stage;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  plan.data = data;
  return plan;
}

void expect_sharded_equal(const program::Plan& plan, bool tied = true) {
  program::Job job = toy_job(plan);
  job.model.tied_embeddings = tied;
  expect_equivalent(unsplit(tied), job);
}

TEST(Sharded, EveryStageEqualsTheUnsplitRun) {
  for (const int stage : {2, 3}) {
    for (const auto& [tensor, pipeline, data] :
         {std::tuple{1, 1, 2}, {1, 1, 4}, {1, 1, 8}, {2, 1, 2}, {1, 2, 2}, {1, 4, 2}, {2, 2, 2}}) {
      expect_sharded_equal(sharded(stage, tensor, pipeline, data));
    }
    expect_sharded_equal(sharded(stage, 1, 1, 4), false);  // untied
    expect_sharded_equal(sharded(stage, 1, 2, 2), false);
  }
}

TEST(Sharded, EveryScheduleAndRecomputationEqualsTheUnsplitRun) {
  for (const int stage : {2, 3}) {
    program::Plan plan = sharded(stage, 1, 2, 2);
    for (const auto schedule : {program::Schedule::kSequential, program::Schedule::kGpipe}) {
      plan.schedule = schedule;
      expect_sharded_equal(plan);
    }
    plan.schedule = program::Schedule::kInterleaved;
    for (const int virtual_stages : {2, 4}) {  // middle chunks are alike: they share their slots
      plan.virtual_stages = virtual_stages;
      expect_sharded_equal(plan);
    }
    for (const auto recompute : {program::Recompute::kSelective, program::Recompute::kFull}) {
      plan.recompute = recompute;
      expect_sharded_equal(plan);
    }
  }
}

TEST(Sharded, PrefetchOverlapAndBucketsChangeNothing) {
  for (const int stage : {1, 2, 3}) {
    for (const std::int64_t bucket_bytes : {0, 50'000, 100'000'000}) {
      program::Plan plan = sharded(stage, 1, 1, 4);
      plan.bucket_bytes = bucket_bytes;
      plan.overlap.parameter_gather = true;
      plan.overlap.gradient_reduction = bucket_bytes > 0;
      expect_sharded_equal(plan);
    }
  }
}

// Ordered by the times of devices whose lanes run in parallel, gathers and reductions move far from their passes: a
// missing dependency would let something be overwritten.
TEST(Sharded, TheOrderOfDevicesWithLanesChangesNothing) {
  for (const int stage : {1, 2, 3}) {
    for (const auto& [tensor, pipeline, virtual_stages, data] :
         {std::tuple{1, 1, 1, 4}, {1, 2, 1, 2}, {1, 2, 2, 2}, {1, 2, 4, 2}}) {
      program::Plan plan = sharded(stage, tensor, pipeline, data);
      plan.virtual_stages = virtual_stages;
      if (virtual_stages > 1) plan.schedule = program::Schedule::kInterleaved;
      plan.shard_group = data == 4 ? 2 : 0;
      for (const bool overlap : {false, true}) {
        plan.overlap.parameter_gather = plan.overlap.gradient_reduction = overlap;
        expect_equivalent(unsplit(true), toy_job(plan), Asked::kClose, "one rank", "dgx-a100-80gb");
      }
    }
  }
}

TEST(Sharded, SequenceParallelEqualsTheUnsplitRun) {
  for (const int stage : {2, 3}) {
    program::Plan plan = sharded(stage, 2, 1, 4);
    plan.sequence_parallel = true;
    expect_sharded_equal(plan);
    plan.overlap.tensor = plan.overlap.parameter_gather = plan.overlap.gradient_reduction = true;
    expect_sharded_equal(plan);
  }
}

TEST(Sharded, HybridShardGroupsEqualTheUnsplitRun) {
  for (const int stage : {1, 2, 3}) {
    for (const auto& [tensor, pipeline, data, group] : {std::tuple{1, 1, 4, 2}, {1, 1, 8, 4}, {2, 1, 4, 2}}) {
      program::Plan plan = sharded(stage, tensor, pipeline, data);
      plan.shard_group = group;
      expect_sharded_equal(plan);
    }
    program::Plan plan = sharded(stage, 1, 2, 4);
    plan.shard_group = 2;
    plan.placement = "data-pipeline-tensor-context";  // ranks of a group stand elsewhere
    plan.overlap.gradient_reduction = true;
    expect_sharded_equal(plan);
  }
}

// One micro-batch a replica: the shards are the sums that replicas would each hold whole.
TEST(Sharded, WithoutAccumulationNothingButWhoKeepsWhatDiffers) {
  program::Job job = toy_job(sharded(0, 1, 1, 8));
  const Trained whole = run(job);
  for (const int stage : {1, 2, 3}) {
    job.plan.zero_stage = stage;
    expect_equivalent(whole, job, Asked::kBits, "the same without ZeRO");
  }
}

// And so, untied, accumulation over the same samples (see the equivalence tests).
TEST(Sharded, WithoutAccumulationEqualsTheUnsplitRunBitByBit) {
  program::Job job = toy_job(sharded(3, 1, 1, 8));
  job.model.tied_embeddings = false;
  expect_equivalent(unsplit(false), job, Asked::kBits);
}

// How far a run is from the unsplit one when ops that `chosen` picks do nothing.
double distance_without(const program::Plan& plan, bool (*chosen)(const program::Op&)) {
  int silenced = 0;
  const Trained split = run(toy_job(plan), 3, [&](program::Program& program) {
    for (program::Body& body : program.bodies) {
      for (program::Op& op : body.ops) {
        if (chosen(op)) op.elements = 0, ++silenced;
      }
    }
  });
  EXPECT_GT(silenced, 0);
  std::string where;
  return difference(unsplit(true), split, where);
}

TEST(ShardedMutation, AShardThatDoesNotAccumulateIsSeen) {
  EXPECT_GT(distance_without(sharded(2, 1, 1, 2),
                             [](const program::Op& op) {
                               return op.kind == program::OpKind::kAdd && op.lane == program::Lane::kData &&
                                      op.in[0] != op.out[0] && op.elements > 2048;
                             }),
            kTolerance);
}

TEST(ShardedMutation, GradientsThatAreNotClearedAreSeen) {
  EXPECT_GT(distance_without(sharded(3, 1, 1, 2),
                             [](const program::Op& op) {
                               return op.kind == program::OpKind::kZeroGradients && op.lane == program::Lane::kData;
                             }),
            kTolerance);
}

TEST(ShardedMutation, AForgottenGatherIsSeen) {
  EXPECT_GT(distance_without(sharded(3, 1, 1, 2),
                             [](const program::Op& op) { return op.kind == program::OpKind::kAllGather; }),
            kTolerance);
}

TEST(ShardedMutation, ShardGroupsThatAreNotSummedAreSeen) {
  program::Plan plan = sharded(3, 1, 1, 4);
  plan.shard_group = 2;
  EXPECT_GT(distance_without(plan, [](const program::Op& op) { return op.group == program::Group::kReplica; }),
            kTolerance);
}

// DeepSpeed moves a layer in four collectives: a rank's shard is four runs.
TEST(Sharded, BucketsThatAreMovedInPartsEqualTheUnsplitRun) {
  for (const bool tied : {true, false}) {
    for (const auto& [tensor, pipeline, data, group] :
         {std::tuple{1, 1, 2, 0}, {1, 1, 8, 0}, {2, 1, 4, 0}, {1, 2, 4, 0}, {1, 2, 4, 2}}) {
      program::Plan plan = sharded(3, tensor, pipeline, data);
      plan.shard_group = group;
      plan.stack = "deepspeed-zero3";
      plan.overlap.gradient_reduction = data > 2;
      expect_sharded_equal(plan, tied);
    }
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
