// Trainings whose layers' products are in 8 bits: a split_ways changes no bit where nothing but who computes differs;
// where ranks scale what they hold and add in another order, the bounds below hold.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <variant>

#include "program/lower/lower.h"
#include "runtime/cpu/backend.h"
#include "tests/runtime/executor/harness.h"
#include "tests/support/split_plan.h"

namespace trivium::runtime::testing {
namespace {

using program::DType;
using program::Fp8;
using program::Plan;
using support::split_plan;

program::Job job_of(const Plan& plan, Fp8 recipe, DType type = DType::kBf16) {
  program::Job job = toy_job(plan);
  job.model.layers = 4;
  job.model.heads = job.model.kv_heads = 2;
  job.model.head_dim = 32;  // 64 columns of q on two ranks: 32 each, a whole block of MXFP8
  job.plan.precision = type;
  job.plan.fp8 = recipe;
  return job;
}

class Fp8Training : public ::testing::TestWithParam<Fp8> {
 protected:
  void expect_bitwise(const program::Job& job, const Trained& reference) {
    SCOPED_TRACE(program::summary(job.plan));
    const Trained got = run(job);
    ASSERT_EQ(got.refused, "");
    std::string where;
    EXPECT_TRUE(bitwise_equal(reference, got, where)) << "first difference in " << where;
  }
  /// The largest relative error of a gradient; infinite where nothing can be compared.
  double expect_close(const program::Job& job, const Trained& reference, double of_loss, double of_gradient) {
    SCOPED_TRACE(program::summary(job.plan));
    const Trained got = run(job);
    EXPECT_EQ(got.refused, "");
    EXPECT_TRUE(got.replicas_agree);
    EXPECT_EQ(got.losses.size(), reference.losses.size());
    if (got.losses.size() != reference.losses.size()) return std::numeric_limits<double>::infinity();
    double loss = 0;
    for (std::size_t s = 0; s < got.losses.size(); ++s) {
      loss = std::max(loss, std::abs(got.losses[s] / reference.losses[s] - 1));
    }
    std::string where;
    const double gradient = gradient_error(reference, got, where);
    EXPECT_LE(loss, of_loss);
    EXPECT_LE(gradient, of_gradient) << where;
    fmt::print("{:<56} {} loss {:.1e} gradient {:.1e}\n", program::summary(job.plan), name_of(job.plan.precision), loss,
               gradient);
    return gradient;
  }
};

TEST_P(Fp8Training, LearnsWhatTheOtherPrecisionLearnsButForItsRounding) {
  const Trained low = run(job_of({}, GetParam())), plain = run(job_of({}, Fp8::kNone));
  EXPECT_NE(low.losses[0], plain.losses[0]);
  for (std::size_t s = 0; s < low.losses.size(); ++s) EXPECT_NEAR(low.losses[s], plain.losses[s], 2e-2);
}

TEST_P(Fp8Training, PipelinesRecomputationAndShardingChangeNoBit) {
  const Trained unsplit = run(job_of({}, GetParam()));
  expect_bitwise(job_of(split_plan(1, 2, 1), GetParam()), unsplit);
  Plan plan = split_plan(1, 2, 1);
  plan.schedule = program::Schedule::kZeroBubble;
  expect_bitwise(job_of(plan, GetParam()), unsplit);
  plan.schedule = program::Schedule::kInterleaved, plan.virtual_stages = 2;
  expect_bitwise(job_of(plan, GetParam()), unsplit);
  for (const auto recompute : {program::Recompute::kSelective, program::Recompute::kFull}) {
    plan = split_plan(1, 1, 1);
    plan.recompute = recompute;
    expect_bitwise(job_of(plan, GetParam()), unsplit);
  }
  program::Job job = job_of(split_plan(1, 1, 2), GetParam());
  job.training.global_batch = 2;
  const Trained replicas = run(job);
  for (const int zero : {1, 2, 3}) {
    job.plan.zero_stage = zero;
    expect_bitwise(job, replicas);
  }
  job.plan.zero_stage = 1;
  job.plan.overlap.gradient_reduction = job.plan.overlap.parameter_gather = true;
  job.plan.offload.activations = program::Storage::kHost;
  expect_bitwise(job, replicas);
}

TEST_P(Fp8Training, ParametersGatheredInEightBitsChangeNothingAtAll) {
  program::Job job = job_of(split_plan(1, 1, 2), GetParam());
  job.training.global_batch = 2;
  const Trained replicas = run(job);
  job.plan.fp8_parameter_gather = program::Fp8Gather::kOn;
  for (const int zero : {1, 2}) {
    for (const bool overlap : {false, true}) {
      job.plan.zero_stage = zero;
      job.plan.overlap.gradient_reduction = job.plan.overlap.parameter_gather = overlap;
      expect_bitwise(job, replicas);
    }
  }
}

// In fp64 sums of another order differ by 1e-15, so what is left is what is cast otherwise: numbers near the bottom of
// a block whose scale another rank's share of it decides, which AdamW carries into the next loss. In bf16 a sum in
// another order may round to its neighbour and that to another of the few numbers of 8 bits, an eighth (E4M3) or a
// quarter (E5M2) away.
TEST_P(Fp8Training, SplitsOfTensorsStayWithinTheBounds) {
  const Trained bf16 = run(job_of({}, GetParam())), fp64 = run(job_of({}, GetParam(), DType::kFp64));
  std::vector<Plan> plans{split_plan(2, 1, 1), split_plan(2, 2, 1), split_plan(2, 1, 2, 1), split_plan(1, 2, 2, 3)};
  plans.push_back(split_plan(2, 1, 1));
  plans.back().sequence_parallel = true;
  plans.push_back(split_plan(1, 1, 1));
  plans.back().context = 2;
  plans.back().attention = program::Attention::kFlash;
  for (const Plan& plan : plans) {
    expect_close(job_of(plan, GetParam(), DType::kFp64), fp64, 1e-4, 1e-4);
    expect_close(job_of(plan, GetParam()), bf16, 1e-3, 0.15);
  }
}

TEST_P(Fp8Training, GatedAndParallelBlocksAndExpertsTrain) {
  program::Job job = job_of(split_plan(1, 1, 2), GetParam(), DType::kFp64);
  job.model.linear_bias = false;
  job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 2};
  const Trained together = run(job);
  job.plan.expert = 2;
  expect_close(job, together, 1e-4, 1e-4);
  job = job_of({}, GetParam(), DType::kFp64);
  job.model.norm = models::Norm::kRmsNorm;
  job.model.activation = models::Activation::kSwiglu;
  job.model.linear_bias = false;
  for (const bool parallel : {false, true}) {
    job.model.parallel_block = parallel;
    job.plan = split_plan(1, 1, 1);
    job.plan.fp8 = GetParam(), job.plan.precision = DType::kFp64;
    const Trained one = run(job);
    ASSERT_EQ(one.refused, "");
    job.plan.pipeline = 2;
    expect_bitwise(job, one);
  }
}

TEST_P(Fp8Training, AdaptersTrainBesideFrozenWeightsIn8Bits) {
  const auto adapted = [](const Plan& plan, DType type) {
    program::Job job = job_of(plan, GetParam(), type);
    job.training.lora = {.rank = 4, .alpha = 8};
    return job;
  };
  const Trained unsplit = run(adapted({}, DType::kBf16)), fp64 = run(adapted({}, DType::kFp64));
  ASSERT_EQ(unsplit.refused, "");
  EXPECT_EQ(unsplit.first_moments.size(), 4U * 8);
  expect_bitwise(adapted(split_plan(1, 2, 1), DType::kBf16), unsplit);
  Plan plan;
  plan.recompute = program::Recompute::kFull;
  expect_bitwise(adapted(plan, DType::kBf16), unsplit);
  plan.recompute = program::Recompute::kNone;
  plan.offload.activations = program::Storage::kHost;
  expect_bitwise(adapted(plan, DType::kBf16), unsplit);
  plan = split_plan(2, 1, 2, 3);
  for (const bool sequence_parallel : {false, true}) {
    plan.sequence_parallel = sequence_parallel;
    expect_close(adapted(plan, DType::kFp64), fp64, 1e-4, 1e-4);
  }
}

TEST_P(Fp8Training, AdaptersOfExpertsTrainBesideFrozenWeightsIn8Bits) {
  program::Job job = job_of(split_plan(1, 1, 2), GetParam(), DType::kFp64);
  job.model.layers = 2;
  job.model.linear_bias = false;
  job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 2};
  job.training.lora = {.rank = 4, .alpha = 8};
  const Trained together = run(job);
  ASSERT_EQ(together.refused, "");
  job.plan.expert = 2, job.plan.zero_stage = 3;
  expect_close(job, together, 1e-4, 1e-4);
  job.plan = split_plan(2, 1, 1);
  job.plan.precision = DType::kFp64, job.plan.fp8 = GetParam(), job.plan.sequence_parallel = true;
  expect_close(job, together, 1e-4, 1e-4);
}

/// A toy whose rows are whole blocks of MXFP8 on two tensor ranks, in one of four shapes.
program::Job shaped(unsigned shape) {
  program::Job job = toy_job({});
  job.model.layers = 4;
  job.model.head_dim = 16;
  job.training.sequence = job.model.max_sequence = 32;
  if (shape == 1) {  // as LLaMA, with Qwen 3's norms of heads
    job.model.norm = models::Norm::kRmsNorm;
    job.model.positions = models::Positions::kRotary;
    job.model.activation = models::Activation::kSwiglu;
    job.model.kv_heads = 2;
    job.model.head_norms = true;
    job.model.linear_bias = job.model.qkv_bias = job.model.tied_embeddings = false;
  }
  job.model.parallel_block = shape == 2;
  if (shape == 3) {
    job.model.linear_bias = false;
    job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 2, .capacity_factor = 0.75};
  }
  return job;
}

Plan drawn(std::mt19937_64& random) {
  const auto one_of = [&](unsigned count) { return static_cast<int>(random() % count); };
  Plan plan;
  plan.tensor = 1 + one_of(2), plan.context = 1 + one_of(2), plan.data = 1 + one_of(2), plan.expert = 1 + one_of(2);
  plan.pipeline = 1 << one_of(3);
  plan.expert_tensor = one_of(2);
  plan.context_method = static_cast<program::ContextMethod>(one_of(2));
  plan.schedule = static_cast<program::Schedule>(one_of(program::kSchedules));
  plan.virtual_stages = program::traits_of(plan.schedule).virtual_stages ? 2 : 1;
  plan.zero_stage = one_of(4);
  plan.sequence_parallel = one_of(2) == 1;
  plan.recompute = static_cast<program::Recompute>(one_of(3));
  plan.attention = static_cast<program::Attention>(one_of(2));
  plan.overlap.gradient_reduction = one_of(2) == 1;
  plan.overlap.parameter_gather = one_of(2) == 1;
  plan.overlap.tensor = one_of(2) == 1;
  plan.micro_batch = 1 + one_of(2);
  plan.offload.activations = static_cast<program::Storage>(one_of(2));
  return plan;
}

// Where one scale serves a tensor, each rank scales its own share, as Transformer Engine does: a number at the bottom
// of the range, cast otherwise by 1e-6 of the largest, may move another one over the middle between two of 8 bits,
// whose gradient is then off by percents. Of 60 seeds of one such plan (context 2, dropped tokens) one did; blocks have
// none. Delayed scaling does so in its first step.
TEST_P(Fp8Training, RandomPlansComputeWhatOneRankComputes) {
  std::mt19937_64 random(7);
  const bool whole_tensors = program::scales_tensors(GetParam());
  int exact = 0;
  for (int trained = 0; trained < 8;) {
    program::Job job = shaped(static_cast<unsigned>(trained) % 4);
    job.plan = drawn(random);
    job.plan.precision = DType::kFp64, job.plan.fp8 = GetParam();
    if (job.plan.ranks() > 8 || program::check(job)) continue;
    program::Job one = job;
    one.plan = {};
    one.plan.precision = DType::kFp64, one.plan.fp8 = GetParam();
    one.plan.attention = job.plan.attention, one.plan.micro_batch = job.plan.micro_batch;
    exact += expect_close(job, run(one), whole_tensors ? 1e-3 : 1e-4, whole_tensors ? 0.05 : 1e-4) <= 1e-4;
    ++trained;
  }
  EXPECT_GE(exact, 7);
}

INSTANTIATE_TEST_SUITE_P(Recipe, Fp8Training, ::testing::Values(Fp8::kDelayed, Fp8::kCurrent, Fp8::kBlock, Fp8::kMxfp8),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

TEST(Fp8Refused, RecipesThatAreOnlyPricedDoNotRunOnCores) {
  for (const Fp8 recipe : {Fp8::kNone, Fp8::kCurrent, Fp8::kDelayed, Fp8::kNvfp4}) {
    const bool runs = recipe != Fp8::kNvfp4;
    program::Op op;
    op.kind = program::OpKind::kMatmul;
    op.fp8 = recipe;
    const std::string why = cpu::CpuBackend().refusal({}, op);
    EXPECT_EQ(
        why,
        runs ? ""
             : fmt::format("the CPU backend emulates fp8 delayed, current, block and mxfp8, not {}; use --fp8 current",
                           name_of(recipe)));
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
