// Passes in pairs compute what they do one after the other: bit by bit what the same split computes without them.
#include <gtest/gtest.h>

#include <tuple>

#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

program::Job pair_job(const program::Plan& plan, bool dropless) {
  program::Job job = toy_job(plan, 16);
  job.model.layers = 4;
  job.model.linear_bias = false;
  job.model.activation = models::Activation::kSwiglu;
  models::Experts e{.count = 4, .top_k = 2, .dropless = dropless, .imbalance = 4};
  e.balance_loss = 0.1;
  if (dropless) {
    e.shared_hidden = 32;
    e.dense_layers = 1, e.dense_hidden = 96;
  }
  job.model.experts = e;
  job.training.dropout = 0.1;
  return job;
}

/// Tensor, context, pipeline, virtual stages, data, expert, ZeRO.
using PairSplit = std::tuple<int, int, int, int, int, int, int>;

program::Plan plan_of(const PairSplit& split) {
  program::Plan plan;
  std::tie(plan.tensor, plan.context, plan.pipeline, plan.virtual_stages, plan.data, plan.expert, plan.zero_stage) =
      split;
  plan.schedule = program::usual_schedule(plan.virtual_stages);
  plan.sequence_parallel = plan.tensor > 1;
  if (plan.context > 1) plan.attention = program::Attention::kFlash;
  plan.overlap.gradient_reduction = plan.overlap.parameter_gather = plan.zero_stage > 0;
  return plan;
}

TEST(ExpertOverlapRun, KeepsTheBitsOfTheSameSplit) {
  for (const PairSplit& split : {PairSplit{1, 1, 1, 1, 2, 2, 0},
                                 {1, 1, 1, 1, 4, 4, 1},
                                 {1, 1, 2, 2, 2, 2, 0},
                                 {1, 1, 2, 2, 4, 2, 1},
                                 {2, 1, 2, 2, 2, 2, 1},
                                 {2, 1, 1, 1, 2, 2, 0},
                                 {1, 2, 2, 2, 2, 2, 1}}) {
    for (const bool dropless : {false, true}) {
      for (const bool whole : {false, true}) {
        program::Plan plan = plan_of(split);
        if (whole && plan.tensor == 1) continue;
        if (whole) plan.expert_tensor = 1;
        const Trained apart = run(pair_job(plan, dropless), 2);
        ASSERT_EQ(apart.refused, "");
        plan.overlap.expert = true;
        expect_equivalent(apart, pair_job(plan, dropless), Asked::kBits, "without overlap.expert");
        plan.recompute = program::Recompute::kSelective;
        expect_equivalent(apart, pair_job(plan, dropless), Asked::kBits, "without overlap.expert");
      }
    }
  }
}

TEST(ExpertOverlapRun, EqualsTheUnsplitRun) {
  for (const bool dropless : {false, true}) {
    const Trained unsplit = run(pair_job({}, dropless), 2);
    for (const PairSplit& split : {PairSplit{1, 1, 1, 1, 2, 2, 0}, {1, 1, 2, 2, 2, 2, 1}, {2, 1, 2, 2, 2, 2, 0}}) {
      program::Plan plan = plan_of(split);
      plan.overlap.expert = true;
      expect_equivalent(unsplit, pair_job(plan, dropless));
    }
  }
}

// DeepSeek's pairs: a forward of one chunk beside a whole backward of the other, in a V, between split backwards.
TEST(ExpertOverlapRun, PairsInAVKeepTheBitsOfTheSameSplitAndEqualTheUnsplitRun) {
  for (const bool dropless : {false, true}) {
    const Trained unsplit = run(pair_job({}, dropless), 2);
    for (const PairSplit& split : {PairSplit{1, 1, 2, 2, 2, 2, 0}, {1, 1, 2, 2, 4, 2, 1}, {1, 1, 2, 2, 4, 4, 1}}) {
      program::Plan plan = plan_of(split);
      plan.schedule = program::Schedule::kDualPipeV;
      const Trained apart = run(pair_job(plan, dropless), 2);
      ASSERT_EQ(apart.refused, "");
      plan.overlap.expert = true;
      expect_equivalent(apart, pair_job(plan, dropless), Asked::kBits, "without overlap.expert");
      expect_equivalent(unsplit, pair_job(plan, dropless));
    }
  }
}

// Times of a cluster whose lanes run in parallel: exchanges are issued ahead of what they overlap.
TEST(ExpertOverlapRun, KeepsTheBitsInTheOrderOfGpus) {
  for (const PairSplit& split : {PairSplit{1, 1, 1, 1, 2, 2, 0}, {1, 1, 2, 2, 2, 2, 1}}) {
    program::Plan plan = plan_of(split);
    plan.precision = program::DType::kFp32;
    const Trained apart = run(pair_job(plan, true), 2);
    plan.overlap.expert = true;
    expect_equivalent(apart, pair_job(plan, true), Asked::kBits, "without overlap.expert", "dgx-a100-80gb");
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
