// Every split computes what the unsplit run computes: losses, gradients, moments and parameters over three steps in
// fp64.
#include "tests/runtime/executor/equivalence.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

namespace trivium::runtime::testing {
namespace {

// The unsplit run with the same micro-batch, computed once.
const Trained& unsplit(int micro_batch, int layers) {
  static std::map<std::pair<int, int>, Trained> known;
  const auto [at, fresh] = known.try_emplace({micro_batch, layers});
  if (fresh) {
    program::Plan plan;
    plan.micro_batch = micro_batch;
    program::Job job = toy_job(plan);
    job.model.layers = layers;
    at->second = run(job);
  }
  return at->second;
}

program::Plan split(int tensor, int pipeline, int virtual_stages, int data) {
  program::Plan plan;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  plan.virtual_stages = virtual_stages;
  plan.schedule = virtual_stages > 1 ? program::Schedule::kInterleaved : program::Schedule::k1f1b;
  plan.data = data;
  return plan;
}

void expect_equal(const program::Plan& plan, bool bitwise) {
  expect_equivalent(unsplit(plan.micro_batch, 8), toy_job(plan), bitwise ? Asked::kBits : Asked::kClose);
}

TEST(Equivalence, EverySplitOfUpToEightRanksEqualsTheUnsplitRun) {
  int runs = 0;
  for (const int tensor : {1, 2, 4}) {
    for (const int pipeline : {1, 2, 4, 8}) {
      for (const int data : {1, 2, 4, 8}) {
        const int ranks = tensor * pipeline * data;
        if (ranks > 8) continue;
        for (const int virtual_stages : {1, 2, 4}) {
          if (virtual_stages > 1 && (pipeline == 1 || pipeline * virtual_stages > 8)) continue;
          program::Plan plan = split(tensor, pipeline, virtual_stages, data);
          if (virtual_stages > 1 && (8 / data) % pipeline != 0) continue;
          std::vector<program::Schedule> schedules{plan.schedule};
          if (pipeline > 1 && virtual_stages == 1)
            schedules = {program::Schedule::k1f1b, program::Schedule::kGpipe, program::Schedule::kSequential};
          for (const auto schedule : schedules) {
            plan.schedule = schedule;
            // One rank a replica and stage: sums come in the unsplit order, so the result is the same bit by bit.
            expect_equal(plan, tensor == 1 && data == 1);
            ++runs;
          }
        }
      }
    }
  }
  EXPECT_GE(runs, 30);
}

TEST(Equivalence, SplitsOfThreeAndSixRanksWithUnevenStagesEqualTheUnsplitRun) {
  for (const int data : {1, 2}) {
    program::Plan plan = split(1, 3, 1, data);
    plan.stage_layers = {2, 3, 3};
    expect_equal(plan, data == 1);
    plan.stage_layers = {4, 3, 1};
    plan.schedule = program::Schedule::kGpipe;
    expect_equal(plan, data == 1);
    plan.schedule = program::Schedule::kSequential;
    expect_equal(plan, data == 1);
  }
  program::Plan plan = split(2, 3, 1, 1);
  plan.stage_layers = {3, 2, 3};
  expect_equal(plan, false);
}

TEST(Equivalence, SplitsWhoseLastStageIsTheHeadAloneEqualTheUnsplitRun) {
  program::Plan plan = split(1, 3, 1, 1);
  plan.stage_layers = {4, 4, 0};
  for (const auto schedule : {program::Schedule::k1f1b, program::Schedule::kGpipe, program::Schedule::kSequential,
                              program::Schedule::kZeroBubble}) {
    plan.schedule = schedule;
    expect_equal(plan, true);
  }
  plan.schedule = program::Schedule::k1f1b;
  plan.recompute = program::Recompute::kFull;
  expect_equal(plan, true);
  plan = split(2, 3, 1, 1);
  plan.stage_layers = {4, 4, 0};
  plan.sequence_parallel = true;
  expect_equal(plan, false);
  plan = split(1, 3, 1, 2);
  plan.stage_layers = {4, 4, 0};
  plan.zero_stage = 1;
  expect_equal(plan, false);
}

TEST(Equivalence, SplitsWhoseFirstStageIsTheEmbeddingAloneEqualTheUnsplitRun) {
  program::Plan plan = split(1, 3, 1, 1);
  for (const std::vector<int>& layers : {std::vector{0, 4, 4}, std::vector{0, 8, 0}}) {
    plan.stage_layers = layers;
    for (const auto schedule : {program::Schedule::k1f1b, program::Schedule::kGpipe, program::Schedule::kSequential}) {
      plan.schedule = schedule;
      expect_equal(plan, true);
    }
  }
  plan.schedule = program::Schedule::k1f1b;
  plan.recompute = program::Recompute::kFull;
  expect_equal(plan, true);
  plan = split(2, 3, 1, 1);
  plan.stage_layers = {0, 4, 4};
  plan.sequence_parallel = true;
  expect_equal(plan, false);
  plan = split(1, 2, 1, 1);
  plan.virtual_stages = 2;
  plan.schedule = program::Schedule::kInterleaved;
  plan.stage_layers = {0, 4, 4, 0};
  expect_equal(plan, true);
  plan = split(1, 3, 1, 2);
  plan.stage_layers = {0, 4, 4};
  for (const int stage : {1, 3}) {
    plan.zero_stage = stage;
    expect_equal(plan, false);
  }
}

// Eight layers on five and seven stages, and 35 samples on five and seven replicas, whose shards are uneven too.
TEST(Equivalence, SplitsOfFiveAndSevenRanksEqualTheUnsplitRun) {
  program::Plan stages = split(1, 5, 1, 1);
  stages.stage_layers = {2, 2, 2, 1, 1};
  expect_equal(stages, true);
  stages = split(1, 7, 1, 1);
  stages.stage_layers = {1, 1, 1, 2, 1, 1, 1};
  expect_equal(stages, true);
  const auto job_of = [](const program::Plan& plan) {
    program::Job job = toy_job(plan, 35);
    job.model.layers = 2;
    return job;
  };
  const Trained reference = run(job_of({}));
  for (const int data : {5, 7}) {
    for (const int zero : {0, 1, 2, 3}) {
      program::Plan plan = split(1, 1, 1, data);
      plan.zero_stage = zero;
      expect_equivalent(reference, job_of(plan));
    }
  }
}

TEST(Equivalence, ShardedOptimizerEqualsTheUnsplitRun) {
  for (const auto& [tensor, pipeline, virtual_stages, data] :
       {std::tuple{1, 1, 1, 2}, {1, 1, 1, 4}, {2, 1, 1, 2}, {1, 2, 1, 2}, {1, 2, 2, 2}, {2, 2, 1, 2}, {1, 1, 1, 8}}) {
    program::Plan plan = split(tensor, pipeline, virtual_stages, data);
    plan.zero_stage = 1;
    expect_equal(plan, false);
  }
}

TEST(Equivalence, SequenceParallelEqualsTheUnsplitRun) {
  for (const auto& [tensor, pipeline, virtual_stages, data] :
       {std::tuple{2, 1, 1, 1}, {4, 1, 1, 1}, {2, 2, 1, 1}, {2, 2, 2, 1}, {2, 1, 1, 2}, {2, 2, 1, 2}, {4, 2, 1, 1}}) {
    program::Plan plan = split(tensor, pipeline, virtual_stages, data);
    plan.sequence_parallel = true;
    for (const int zero : {0, 1}) {
      plan.zero_stage = data > 1 ? zero : 0;
      expect_equal(plan, false);
    }
  }
}

TEST(Equivalence, RecomputationChangesNothingAtAll) {
  for (const auto recompute : {program::Recompute::kSelective, program::Recompute::kFull}) {
    for (const int pipeline : {1, 2, 4}) {
      program::Plan plan = split(1, pipeline, 1, 1);
      plan.recompute = recompute;
      expect_equal(plan, true);
    }
    program::Plan plan = split(2, 2, 1, 2);
    plan.recompute = recompute;
    plan.sequence_parallel = true;
    plan.zero_stage = 1;
    expect_equal(plan, false);
  }
}

// The sharded optimizer against the same replicas unsharded: nothing but who keeps the moments differs.
TEST(Equivalence, ShardingTheOptimizerAloneChangesNothingAtAll) {
  for (const int data : {2, 4}) {
    program::Plan plan = split(1, 2, 1, data);
    const Trained whole = run(toy_job(plan));
    plan.zero_stage = 1;
    expect_equivalent(whole, toy_job(plan), Asked::kBits, "the same without ZeRO");
  }
}

// One micro-batch a replica: rank-ordered sums add gradients just as accumulation does. Untied, because a tied weight's
// two uses are added before replicas are reduced (one reduction instead of two), which is another order of sums.
TEST(Equivalence, ReplicasWithOneMicroBatchEachEqualAccumulationBitByBit) {
  program::Plan plan;
  program::Job job = toy_job(plan);
  job.model.tied_embeddings = false;
  const Trained accumulated = run(job);
  job.plan.data = 8;
  for (const int zero : {0, 1}) {
    job.plan.zero_stage = zero;
    expect_equivalent(accumulated, job, Asked::kBits);
  }
}

// Tensor ranks hold the same activations: a part from each of them is the whole that one has.
TEST(Equivalence, TransfersInPartsChangeNothingAtAll) {
  for (const auto& [tensor, pipeline, virtual_stages, data] :
       {std::tuple{2, 2, 1, 1}, {4, 2, 1, 1}, {2, 4, 1, 1}, {2, 2, 2, 1}, {2, 2, 4, 1}, {2, 2, 1, 2}}) {
    program::Plan plan = split(tensor, pipeline, virtual_stages, data);
    std::vector<program::Schedule> schedules{plan.schedule};
    if (virtual_stages == 1 && data == 1) {
      schedules = {program::Schedule::k1f1b, program::Schedule::kGpipe, program::Schedule::kZeroBubble};
    }
    for (const auto schedule : schedules) {
      plan.schedule = schedule;
      plan.scatter_gather = program::ScatterGather::kOff;
      const Trained whole = run(toy_job(plan));
      plan.scatter_gather = program::ScatterGather::kOn;
      expect_equivalent(whole, toy_job(plan), Asked::kBits, "whole transfers");
    }
  }
}

// As the nodes of a cluster order them, whose gathers run on a lane of their own.
TEST(Equivalence, TransfersInPartsOrderedForACluster) {
  program::Plan plan = split(2, 4, 1, 1);
  plan.scatter_gather = program::ScatterGather::kOn;
  expect_equivalent(unsplit(1, 8), toy_job(plan), Asked::kClose, "one rank", "dgx-a100-80gb:1");
}

TEST(Equivalence, OverlappedAndMergedBucketsChangeNothing) {
  program::Plan plan = split(1, 2, 1, 2);
  plan.overlap.gradient_reduction = true;
  expect_equal(plan, false);
  plan.bucket_bytes = 100'000;
  plan.zero_stage = 1;
  expect_equal(plan, false);
  program::Plan tensor = split(2, 1, 1, 1);
  tensor.overlap.tensor = true;
  expect_equal(tensor, false);
}

TEST(Equivalence, FlashAttentionEqualsUnfusedAttention) {
  program::Plan plan;
  plan.attention = program::Attention::kFlash;
  expect_equal(plan, false);
}

TEST(Equivalence, LargerMicroBatchesEqualTheirOwnUnsplitRun) {
  program::Plan plan = split(2, 2, 1, 1);
  plan.micro_batch = 2;
  expect_equal(plan, false);
  program::Plan pipeline_only = split(1, 4, 1, 1);
  pipeline_only.micro_batch = 4;
  expect_equal(pipeline_only, true);
}

}  // namespace
}  // namespace trivium::runtime::testing
