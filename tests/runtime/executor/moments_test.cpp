// Moments that are kept in 16 bits: what they are rounded to, and the same training under every split.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

using program::Moments;
using program::Plan;
using program::Storage;

Plan moments_split(int tensor, int pipeline, int data, int zero_stage = 0) {
  Plan plan;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  plan.data = data;
  plan.zero_stage = zero_stage;
  plan.moment_dtype = Moments::kBf16;
  return plan;
}

/// To the nearest number of eight significant bits, ties to even: the processor's rounding of a scaled number. Moments
/// of the toy are far above bf16's subnormals, or 0.
double eight_bits(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
}

/// The largest number of a tensor is far above the smallest that bf16 has.
void expect_rounded(const Tensors& kept, const Tensors& exact) {
  std::size_t rounded = 0;
  for (const auto& [name, values] : exact) {
    const std::vector<double>& narrow = kept.at(name);
    ASSERT_EQ(narrow.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::abs(values[i]) < 0x1p-120) continue;
      ASSERT_EQ(narrow[i], eight_bits(values[i])) << name << " " << i;
      rounded += narrow[i] != values[i] ? 1 : 0;
    }
  }
  EXPECT_GT(rounded, 1000U);
}

// The first step begins with moments of zero: it computes with what it will round.
TEST(NarrowMoments, AreThoseOfOneStepRoundedAfterIt) {
  Plan wide;
  const Trained exact = run(toy_job(wide), 1), kept = run(toy_job(moments_split(1, 1, 1)), 1);
  ASSERT_EQ(kept.refused, "");
  expect_rounded(kept.first_moments, exact.first_moments);
  expect_rounded(kept.second_moments, exact.second_moments);
  EXPECT_EQ(kept.parameters, exact.parameters);
}

// In the second step both computed the same gradients, so half a unit of 2^-7 is what rounding twice may have moved a
// second moment by, which only adds up: v' = b2 v + (1 - b2) g^2, each term 0 or more.
TEST(NarrowMoments, StayWithinTheirRoundings) {
  const Trained exact = run(toy_job(Plan{}), 2), kept = run(toy_job(moments_split(1, 1, 1)), 2);
  EXPECT_EQ(kept.gradients.at(1), exact.gradients.at(1));
  bool differs = false;
  for (const auto& [name, values] : exact.second_moments) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] < 0x1p-110) continue;
      const double got = kept.second_moments.at(name)[i];
      ASSERT_NEAR(got, values[i], 0x1.02p-7 * values[i]) << name << " " << i;
      differs |= got != values[i];
    }
  }
  EXPECT_TRUE(differs);
}

// Sums in another order differ by some 1e-15 an operation, which rounding takes away but where a number lies that close
// to the middle between two of bf16: of these none does, or it would be 2^-9 off. So the tolerance is that of fp64
// sums.
TEST(NarrowMoments, EqualTheUnsplitRunUnderEverySplit) {
  const Trained unsplit = run(toy_job(moments_split(1, 1, 1)));
  for (const auto& [tensor, pipeline, data, zero] :
       {std::tuple{2, 1, 1, 0}, {1, 4, 1, 0}, {1, 1, 4, 0}, {1, 1, 4, 1}, {1, 1, 4, 2}, {2, 1, 2, 3}, {2, 2, 2, 1}}) {
    expect_equivalent(unsplit, toy_job(moments_split(tensor, pipeline, data, zero)));
  }
  Plan context = moments_split(1, 1, 2, 1);
  context.context = 2;
  context.attention = program::Attention::kFlash;
  expect_equivalent(unsplit, toy_job(context));
}

// A step of one element reads that element alone: whoever steps it, the bits are the same. One micro-batch a replica,
// as ZeRO 2 and 3 sum every one over replicas first.
TEST(NarrowMoments, ShardsAndOffloadKeepTheBits) {
  const Trained replicas = run(toy_job(moments_split(1, 1, 2), 2));
  for (const int zero : {1, 2, 3}) {
    Plan plan = moments_split(1, 1, 2, zero);
    expect_equivalent(replicas, toy_job(plan, 2), Asked::kBits, "replicas that keep all");
    for (const Storage storage : {Storage::kHost, Storage::kDisk}) {
      plan.offload.optimizer = storage;
      expect_equivalent(replicas, toy_job(plan, 2), Asked::kBits, "replicas that keep all");
    }
  }
}

// With 16-bit parameters an fp32 copy follows the moments, and where a stack keeps fp16 gradients these in fp32.
TEST(NarrowMoments, BesideCopiesOfParametersKeepTheBits) {
  for (const auto& [precision, stack] : {std::tuple{program::DType::kBf16, "trivium"},
                                         {program::DType::kFp16, "trivium"},
                                         {program::DType::kFp16, "megatron"},
                                         {program::DType::kFp32, "trivium"}}) {
    program::Job job = toy_job(moments_split(1, 1, 2));
    job.plan.precision = precision;
    job.plan.stack = stack;
    job.training.loss_scaling.initial = 1024;
    const Trained replicas = run(job);
    ASSERT_EQ(replicas.refused, "");
    job.plan.zero_stage = 1;
    expect_equivalent(replicas, job, Asked::kBits, "replicas that keep all");
    job.plan.offload.optimizer = Storage::kHost;
    expect_equivalent(replicas, job, Asked::kBits, "replicas that keep all");
    for (const auto& [name, values] : replicas.second_moments) {
      for (const double value : values) ASSERT_EQ(value, eight_bits(value)) << name;
    }
  }
}

TEST(NarrowMoments, OfSpreadExpertsEqualThoseOfTogether) {
  program::Job job = toy_job(moments_split(1, 1, 2));
  job.model.linear_bias = false;
  job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 2};
  const Trained together = run(job);
  ASSERT_EQ(together.refused, "");
  job.plan.expert = 2;
  job.plan.zero_stage = 1;
  expect_equivalent(together, job, Asked::kClose, "experts on every rank");
}

}  // namespace
}  // namespace trivium::runtime::testing
