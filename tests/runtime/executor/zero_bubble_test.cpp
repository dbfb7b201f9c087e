// Split backwards and recomputation that differs from stage to stage: the arithmetic of the unsplit run.
#include <gtest/gtest.h>

#include <tuple>

#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

using program::Plan;
using program::Recompute;
using program::Schedule;

void expect_unsplit_equal(const Plan& plan, bool bitwise) {
  static const Trained kReference = run(toy_job(Plan{}));
  expect_equivalent(kReference, toy_job(plan), bitwise ? Asked::kBits : Asked::kClose);
}

Plan split_stages(int tensor, int pipeline, int data) {
  Plan plan;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  plan.data = data;
  plan.schedule = Schedule::kZeroBubble;
  return plan;
}

TEST(ZeroBubbleRun, EqualsTheUnsplitRunBitByBit) {
  for (const int pipeline : {1, 2, 4, 8}) expect_unsplit_equal(split_stages(1, pipeline, 1), true);
}

TEST(ZeroBubbleRun, EqualsItBitByBitWithRecomputation) {
  for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
    for (const int pipeline : {2, 4}) {
      Plan plan = split_stages(1, pipeline, 1);
      plan.recompute = recompute;
      expect_unsplit_equal(plan, true);
    }
  }
}

TEST(ZeroBubbleRun, EqualsItWithTensorAndDataParallel) {
  for (const auto& [tensor, pipeline, data] : {std::tuple{2, 2, 1}, {1, 2, 2}, {2, 2, 2}, {1, 4, 2}, {4, 2, 1}}) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
      Plan plan = split_stages(tensor, pipeline, data);
      plan.recompute = recompute;
      plan.sequence_parallel = tensor > 1;
      plan.zero_stage = data > 1 ? 1 : 0;
      plan.overlap.gradient_reduction = data > 1;
      expect_unsplit_equal(plan, false);
    }
  }
}

// Both halves leave gradients in the slots of the buckets, and both are reduced.
TEST(ZeroBubbleRun, EqualsItWithShardedGradientsAndParameters) {
  for (const int zero : {2, 3}) {
    for (const auto& [tensor, pipeline, data] : {std::tuple{1, 1, 2}, {1, 2, 2}, {2, 2, 2}, {1, 4, 2}, {1, 2, 4}}) {
      for (const bool overlap : {false, true}) {
        Plan plan = split_stages(tensor, pipeline, data);
        plan.zero_stage = zero;
        plan.sequence_parallel = tensor > 1;
        plan.overlap.gradient_reduction = plan.overlap.parameter_gather = overlap;
        expect_unsplit_equal(plan, false);
      }
    }
  }
  Plan plan = split_stages(1, 2, 4);
  plan.zero_stage = 3;
  plan.shard_group = 2;
  plan.recompute = Recompute::kFull;
  expect_unsplit_equal(plan, false);
}

TEST(ZeroBubbleRun, EqualsItWithUnevenStages) {
  Plan plan = split_stages(1, 3, 1);
  plan.stage_layers = {4, 3, 1};
  expect_unsplit_equal(plan, true);
}

TEST(StageRecomputeRun, EqualsTheUnsplitRunBitByBit) {
  Plan plan;
  plan.pipeline = 4;
  plan.stage_recompute = {Recompute::kFull, Recompute::kSelective, Recompute::kNone, Recompute::kFull};
  expect_unsplit_equal(plan, true);
  plan.schedule = Schedule::kZeroBubble;
  expect_unsplit_equal(plan, true);
  plan.pipeline = 2;
  plan.virtual_stages = 2;
  plan.schedule = Schedule::kInterleaved;
  expect_unsplit_equal(plan, true);
}

}  // namespace
}  // namespace trivium::runtime::testing
