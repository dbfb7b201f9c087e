// Trainings in 16 bits under every split: bit by bit where nothing but who computes differs, else within the bounds of
// their precision.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "program/lower/lower.h"
#include "runtime/executor/loss_scale.h"
#include "runtime/executor/train.h"
#include "tests/program/jobs.h"
#include "tests/runtime/executor/harness.h"
#include "tests/support/split_plan.h"

namespace trivium::runtime::testing {
namespace {

using program::DType;
using program::Plan;
using support::split_plan;

/// A unit in the last place is 2^-8 of a bf16 number and 2^-11 of an fp16 one. Sums in another order differ by about a
/// unit a rounding; the few dozen roundings on the way from a loss to a gradient leave some units of a tensor's norm.
struct Bounds {
  double loss, gradient;  ///< of a loss; of a tensor, relative in the L2 norm
};

Bounds bounds_of(DType type) { return type == DType::kBf16 ? Bounds{1e-3, 2e-2} : Bounds{1e-4, 4e-3}; }

program::Job job_of(const Plan& plan, DType type) {
  program::Job job = toy_job(plan);
  job.model.layers = 4;
  job.plan.precision = type;
  job.training.loss_scaling.initial = 1024;
  return job;
}

const Trained& unsplit(DType type) {
  static const Trained bf16 = run(job_of({}, DType::kBf16)), fp16 = run(job_of({}, DType::kFp16));
  return type == DType::kBf16 ? bf16 : fp16;
}

class HalfPrecision : public ::testing::TestWithParam<DType> {
 protected:
  void expect_bitwise(const program::Job& job, const Trained& reference) {
    SCOPED_TRACE(program::summary(job.plan));
    const Trained got = run(job);
    ASSERT_EQ(got.refused, "");
    std::string where;
    EXPECT_TRUE(bitwise_equal(reference, got, where)) << "first difference in " << where;
  }
  void expect_within_bounds(const program::Job& job, const Trained& reference) {
    SCOPED_TRACE(program::summary(job.plan));
    const Trained got = run(job);
    ASSERT_EQ(got.refused, "");
    EXPECT_TRUE(got.replicas_agree);
    const Bounds bounds = bounds_of(GetParam());
    ASSERT_EQ(got.losses.size(), reference.losses.size());
    double loss = 0;
    for (std::size_t s = 0; s < got.losses.size(); ++s) {
      loss = std::max(loss, std::abs(got.losses[s] / reference.losses[s] - 1));
    }
    std::string where;
    const double gradient = gradient_error(reference, got, where);
    EXPECT_LE(loss, bounds.loss);
    EXPECT_LE(gradient, bounds.gradient) << where;
    fmt::print("{:<56} {} loss {:.1e} gradient {:.1e}\n", program::summary(job.plan), name_of(GetParam()), loss,
               gradient);
  }
};

TEST_P(HalfPrecision, ItIsNotFp32) {
  const program::Job wide = job_of({}, DType::kFp32);
  const Trained fp32 = run(wide);
  const Trained& half = unsplit(GetParam());
  EXPECT_NE(half.losses[0], fp32.losses[0]);
  EXPECT_NEAR(half.losses[2], fp32.losses[2], bounds_of(GetParam()).loss * fp32.losses[2]);
}

TEST_P(HalfPrecision, PipelinesAndRecomputationChangeNoBit) {
  for (const int pipeline : {2, 4}) expect_bitwise(job_of(split_plan(1, pipeline, 1), GetParam()), unsplit(GetParam()));
  Plan plan = split_plan(1, 2, 1);
  plan.schedule = program::Schedule::kInterleaved, plan.virtual_stages = 2;
  expect_bitwise(job_of(plan, GetParam()), unsplit(GetParam()));
  plan = split_plan(1, 2, 1);
  plan.schedule = program::Schedule::kZeroBubble;
  expect_bitwise(job_of(plan, GetParam()), unsplit(GetParam()));
  for (const auto recompute : {program::Recompute::kSelective, program::Recompute::kFull}) {
    plan = split_plan(1, 2, 1);
    plan.recompute = recompute;
    expect_bitwise(job_of(plan, GetParam()), unsplit(GetParam()));
  }
}

TEST_P(HalfPrecision, ShardingAndOffloadChangeNoBitOfTheSameReplicas) {
  program::Job job = job_of(split_plan(1, 2, 2), GetParam());
  job.training.global_batch = 2;  // one micro-batch each: ZeRO 2 and 3 reduce every one
  const Trained replicas = run(job);
  for (const int zero : {1, 2, 3}) {
    job.plan.zero_stage = zero;
    expect_bitwise(job, replicas);
  }
  job.plan.zero_stage = 1;
  job.plan.offload.optimizer = program::Storage::kHost;
  job.plan.offload.activations = program::Storage::kDisk;
  expect_bitwise(job, replicas);
}

TEST_P(HalfPrecision, EverySplitStaysWithinTheBoundsOfItsPrecision) {
  std::vector<Plan> plans{split_plan(2, 1, 1),    split_plan(4, 1, 1),    split_plan(1, 1, 4),
                          split_plan(2, 2, 2, 1), split_plan(1, 1, 2, 2), split_plan(1, 2, 2, 3)};
  plans.push_back(split_plan(2, 1, 2));
  plans.back().sequence_parallel = true;
  plans.push_back(split_plan(1, 1, 1));
  plans.back().context = 2;
  plans.back().attention = program::Attention::kFlash;
  plans.push_back(split_plan(2, 1, 1));
  plans.back().context = 2;
  plans.back().context_method = program::ContextMethod::kAllToAll;
  plans.push_back(split_plan(2, 1, 2));
  plans.back().compression = program::Compression::kFp16;
  plans.push_back(split_plan(1, 1, 4, 1));
  plans.back().reduce_dtype = GetParam();
  for (const Plan& plan : plans) expect_within_bounds(job_of(plan, GetParam()), unsplit(GetParam()));
}

// Experts on one rank and on two, the same arithmetic on both: tokens choose alike.
TEST_P(HalfPrecision, SpreadExpertsStayWithinTheBounds) {
  program::Job job = job_of(split_plan(1, 1, 2), GetParam());
  job.model.linear_bias = false;
  job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 2};
  const Trained together = run(job);
  job.plan.expert = 2;
  expect_within_bounds(job, together);
}

// fp16 gradients of Megatron's trait: kept and summed in 16 bits.
TEST_P(HalfPrecision, AStackThatKeepsFp16GradientsRunsToo) {
  program::Job job = job_of(split_plan(2, 1, 2, 1), GetParam());
  job.plan.stack = "megatron";
  expect_within_bounds(job, unsplit(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Type, HalfPrecision, ::testing::Values(DType::kBf16, DType::kFp16),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

TrainResult train(const program::Job& job, std::int64_t steps) {
  TrainOptions options;
  options.steps = steps;
  options.timeline_steps = 0;
  const auto corpus = toy_corpus(4000, static_cast<std::int32_t>(job.model.vocab));
  return train_in_threads(program::verified(ordered_program(job)), *corpus, options);
}

// 2^40 times the gradients is beyond fp16; every rank backs off alike until they fit.
TEST(LossScaling, BacksOffUntilGradientsFitWithoutLearningAnything) {
  program::Job job = job_of(split_plan(2, 2, 2), DType::kFp16);
  job.training.loss_scaling.initial = 0x1.0p40;
  job.training.loss_scaling.backoff = 0x1.0p-10;
  const TrainResult result = train(job, 6);
  ASSERT_EQ(result.diverged, "");
  ASSERT_EQ(result.steps.size(), 6U);
  EXPECT_EQ(result.steps[0].loss_scale, 0x1.0p40);
  EXPECT_TRUE(result.steps[0].skipped);
  EXPECT_EQ(result.steps[0].grad_norm, 0);
  EXPECT_EQ(result.steps[1].loss_scale, 0x1.0p30);
  EXPECT_FALSE(result.steps.back().skipped);
  EXPECT_GT(result.steps.back().grad_norm, 0);
}

// Scales are powers of two: what does not overflow is the same whatever the scale was, but for subnormals.
TEST(LossScaling, GrowsAfterStepsWithoutOverflow) {
  program::Job job = job_of({}, DType::kFp16);
  job.training.loss_scaling = {.initial = 64, .interval = 2};
  const TrainResult result = train(job, 5);
  std::vector<double> scales;
  for (const program::StepRecord& step : result.steps) scales.push_back(step.loss_scale);
  EXPECT_EQ(scales, (std::vector<double>{64, 64, 128, 128, 256}));
}

TEST(LossScaling, OtherPrecisionsHaveNone) {
  const TrainResult result = train(job_of({}, DType::kBf16), 1);
  EXPECT_EQ(result.steps.at(0).loss_scale, 0);
}

// By hand: an overflow at 8 leaves 4 and begins to count anew; two good steps later it is 8 again; never below 1.
TEST(LossScaling, FollowsItsRule) {
  const program::LossScaling how{.initial = 8, .interval = 2, .backoff = 0.5};
  LossScale now{.scale = 8, .steps = 1};
  now = next_scale(now, how, true);
  EXPECT_EQ(now, (LossScale{4, 0, 1}));
  now = next_scale(now, how, false);
  EXPECT_EQ(now, (LossScale{4, 1, 1}));
  now = next_scale(now, how, false);
  EXPECT_EQ(now, (LossScale{8, 0, 1}));
  for (int i = 0; i < 9; ++i) now = next_scale(now, how, true);
  EXPECT_EQ(now, (LossScale{1, 0, 10}));
  EXPECT_FALSE(can_back_off(now));
}

}  // namespace
}  // namespace trivium::runtime::testing
