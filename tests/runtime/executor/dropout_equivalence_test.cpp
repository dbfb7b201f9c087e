// Dropout drops the same elements under every plan: splits equal their unsplit run, and no bit changes where
// without dropout none did.
#include <gtest/gtest.h>

#include <tuple>

#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

program::Job dropped(const program::Plan& plan) {
  program::Job job = toy_job(plan);
  job.model.layers = 4;
  job.training.dropout = 0.2;
  return job;
}

const Trained& dropping_unsplit() {
  static const Trained reference = run(dropped({}));
  return reference;
}

program::Plan dropping_split(int tensor, int pipeline, int virtual_stages, int data) {
  program::Plan plan;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  plan.virtual_stages = virtual_stages;
  plan.schedule = virtual_stages > 1 ? program::Schedule::kInterleaved : program::Schedule::k1f1b;
  plan.data = data;
  return plan;
}

TEST(Dropout, OfEveryPipelineIsTheSameBitByBit) {
  for (const auto& [pipeline, virtual_stages] : {std::pair{2, 1}, {4, 1}, {2, 2}}) {
    program::Plan plan = dropping_split(1, pipeline, virtual_stages, 1);
    if (virtual_stages > 1) {
      expect_equivalent(dropping_unsplit(), dropped(plan), Asked::kBits);
      continue;
    }
    for (const auto schedule : {program::Schedule::k1f1b, program::Schedule::kGpipe, program::Schedule::kSequential,
                                program::Schedule::kZeroBubble}) {
      plan.schedule = schedule;
      expect_equivalent(dropping_unsplit(), dropped(plan), Asked::kBits);
    }
  }
}

TEST(Dropout, IsDrawnAgainAsItWasWhereActivationsAre) {
  for (const auto attention : {program::Attention::kUnfused, program::Attention::kFlash}) {
    program::Plan plan;
    plan.attention = attention;
    const Trained reference = run(dropped(plan));
    for (const auto recompute : {program::Recompute::kSelective, program::Recompute::kFull}) {
      plan.recompute = recompute;
      for (const int pipeline : {1, 2}) {
        plan.pipeline = pipeline;
        expect_equivalent(reference, dropped(plan), Asked::kBits);
      }
    }
    plan = {};
    plan.attention = attention;
    plan.offload.activations = program::Storage::kHost;
    expect_equivalent(reference, dropped(plan), Asked::kBits);
  }
}

TEST(Dropout, OfTensorAndSequenceParallelRanksIsThatOfOne) {
  for (const auto& [tensor, pipeline, data] : {std::tuple{2, 1, 1}, {4, 1, 1}, {2, 2, 1}, {2, 1, 2}, {2, 2, 2}}) {
    for (const bool sequence_parallel : {false, true}) {
      program::Plan plan = dropping_split(tensor, pipeline, 1, data);
      plan.sequence_parallel = sequence_parallel;
      expect_equivalent(dropping_unsplit(), dropped(plan));
      plan.recompute = program::Recompute::kFull;
      if (pipeline > 1) plan.schedule = program::Schedule::kZeroBubble;
      plan.attention = program::Attention::kFlash;
      expect_equivalent(dropping_unsplit(), dropped(plan));
    }
  }
}

TEST(Dropout, OfContextRanksIsThatOfOne) {
  for (const auto method : {program::ContextMethod::kRing, program::ContextMethod::kAllToAll}) {
    for (const auto& [context, tensor, pipeline, data, sequence_parallel] :
         {std::tuple{2, 1, 1, 1, false}, {4, 1, 1, 1, false}, {2, 2, 1, 1, true}, {2, 1, 2, 2, false}}) {
      program::Plan plan = dropping_split(tensor, pipeline, 1, data);
      plan.context = context;
      plan.context_method = method;
      plan.attention = program::Attention::kFlash;
      plan.sequence_parallel = sequence_parallel;
      expect_equivalent(dropping_unsplit(), dropped(plan));
    }
  }
}

// Chunks of 70 positions: more than a block of queries, and their keys begin within the four columns of a draw.
TEST(Dropout, OfLongerRingsIsThatOfOne) {
  const auto job_of = [](const program::Plan& plan) {
    program::Job job = dropped(plan);
    job.model.layers = 1;
    job.model.max_sequence = job.training.sequence = 280;
    job.training.global_batch = 2;
    return job;
  };
  program::Plan plan;
  plan.attention = program::Attention::kFlash;
  const Trained reference = run(job_of(plan), 2);
  plan.context = 2;
  expect_equivalent(reference, job_of(plan));
}

TEST(Dropout, OfReplicasIsThatOfOne) {
  for (const int data : {2, 4, 8}) {
    for (const int zero : {0, 1, 2, 3}) {
      program::Plan plan = dropping_split(1, 1, 1, data);
      plan.zero_stage = zero;
      expect_equivalent(dropping_unsplit(), dropped(plan));
    }
  }
  program::Plan plan;
  program::Job job = dropped(plan);
  job.model.tied_embeddings = false;
  const Trained accumulated = run(job);
  job.plan.data = 8;
  for (const int zero : {0, 1}) {
    job.plan.zero_stage = zero;
    expect_equivalent(accumulated, job, Asked::kBits);
  }
}

TEST(Dropout, OfLargerMicroBatchesIsThatOfSmallOnes) {
  program::Plan plan;
  plan.micro_batch = 4;
  expect_equivalent(dropping_unsplit(), dropped(plan), Asked::kClose, "micro-batches of one");
}

TEST(Dropout, OfOtherBlocksIsThatOfOneRank) {
  const auto shaped = [](int shape, const program::Plan& plan) {
    program::Job job = dropped(plan);
    if (shape == 0) {
      job.model.norm = models::Norm::kRmsNorm;
      job.model.positions = models::Positions::kRotary;
      job.model.activation = models::Activation::kSwiglu;
      job.model.kv_heads = 2;
      job.model.linear_bias = job.model.qkv_bias = job.model.tied_embeddings = false;
    }
    job.model.parallel_block = shape == 1;
    if (shape == 2) {
      job.model.linear_bias = false;
      job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 2, .capacity_factor = 0.75};
    }
    return job;
  };
  for (const int shape : {0, 1, 2}) {
    const Trained reference = run(shaped(shape, {}), 2);
    program::Plan pipeline = dropping_split(1, 2, 1, 1);
    pipeline.schedule = program::Schedule::kZeroBubble;
    // Stages with experts add the balance of their layers apart.
    expect_equivalent(reference, shaped(shape, pipeline), shape == 2 ? Asked::kClose : Asked::kBits);
    program::Plan plan = dropping_split(2, 2, 1, 2);
    plan.sequence_parallel = true;
    plan.recompute = program::Recompute::kFull;
    if (shape == 2) plan.expert = 2;
    expect_equivalent(reference, shaped(shape, plan));
    plan = dropping_split(2, 1, 1, 2);
    plan.context = 2;
    plan.attention = program::Attention::kFlash;
    if (shape == 2) plan.expert = 2;
    expect_equivalent(reference, shaped(shape, plan));
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
