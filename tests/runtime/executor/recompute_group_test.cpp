// Full recomputation of several layers together, from the input of the first of them: the training keeps its bits, and
// fewer inputs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "program/lower/lower.h"
#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

using program::Plan;
using JobOf = std::function<program::Job(const Plan&)>;

constexpr int kLayers = 7;  // of which chunks have three or four, or two and one

program::Job seven_layers(const Plan& plan) {
  program::Job job = toy_job(plan, 8);
  job.model.layers = kLayers;
  return job;
}

program::Job seven_gated_layers(const Plan& plan) {
  program::Job job = seven_layers(plan);
  job.model.norm = models::Norm::kRmsNorm;
  job.model.positions = models::Positions::kRotary;
  job.model.activation = models::Activation::kSwiglu;
  job.model.linear_bias = job.model.qkv_bias = false;
  return job;
}

/// Every other layer a mixture, so that a group has both kinds.
program::Job seven_mixed_layers(const Plan& plan, bool dropless) {
  program::Job job = seven_gated_layers(plan);
  job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 2, .dropless = dropless, .imbalance = 4};
  return job;
}

program::Job of_dropless(const Plan& plan) { return seven_mixed_layers(plan, true); }
program::Job of_capacity(const Plan& plan) { return seven_mixed_layers(plan, false); }

Plan split_with(int tensor, bool sequence_parallel, int pipeline, int data, int zero) {
  Plan plan;
  plan.tensor = tensor, plan.sequence_parallel = sequence_parallel, plan.pipeline = pipeline, plan.data = data;
  plan.zero_stage = zero;
  plan.overlap.tensor = sequence_parallel;
  if (pipeline > 1) plan.stage_layers = {3, 4};
  return plan;
}

Plan interleaved_chunks() {
  Plan plan = split_with(1, false, 2, 1, 0);
  plan.virtual_stages = 2;
  plan.schedule = program::Schedule::kInterleaved;
  plan.stage_layers = {2, 1, 3, 1};
  return plan;
}

Plan of_group(Plan plan, int layers) {
  plan.recompute = program::Recompute::kFull;
  plan.recompute_group = layers;
  return plan;
}

/// Of one rank of every stage, without the workspace: what micro-batches keep.
std::int64_t kept_bytes(const program::Job& job) {
  const auto lowered = program::lower(job);
  std::int64_t bytes = 0;
  for (const program::Role& role : std::get<program::Program>(lowered).roles) {
    bytes += role.bytes[static_cast<std::size_t>(program::Space::kFrame)];
  }
  return bytes;
}

void expect_bits_stay(const JobOf& job_of, const Plan& plan) {
  const Trained kept = run(job_of(plan), 2);
  ASSERT_EQ(kept.refused, "") << program::summary(plan);
  std::int64_t before = kept_bytes(job_of(of_group(plan, 1)));
  for (const int layers : {2, 3, kLayers}) {
    const program::Job job = job_of(of_group(plan, layers));
    expect_equivalent(kept, job, Asked::kBits, "nothing recomputed");
    EXPECT_LE(kept_bytes(job), before) << program::summary(job.plan);
    before = kept_bytes(job);
  }
  EXPECT_LT(before, kept_bytes(job_of(of_group(plan, 1)))) << program::summary(plan);
}

TEST(RecomputedGroups, EqualOneRank) {
  for (const JobOf& job_of : {JobOf(seven_layers), JobOf(seven_gated_layers), JobOf(of_dropless)}) {
    const Trained alone = run(job_of(Plan{}), 3);
    for (const int layers : {2, 3}) {
      expect_equivalent(alone, job_of(of_group(split_with(1, false, 2, 1, 0), layers)));
      expect_equivalent(alone, job_of(of_group(interleaved_chunks(), layers)));
      expect_equivalent(alone, job_of(of_group(split_with(2, true, 1, 1, 0), layers)));
      for (const int zero : {1, 3}) {
        expect_equivalent(alone, job_of(of_group(split_with(1, false, 1, 2, zero), layers)));
      }
    }
  }
}

TEST(RecomputedGroups, KeepTheBitsUnderEverySplit) {
  for (const Plan& plan : {split_with(1, false, 1, 1, 0), split_with(2, true, 2, 1, 0), split_with(1, false, 2, 2, 1),
                           interleaved_chunks()}) {
    expect_bits_stay(seven_layers, plan);
    expect_bits_stay(seven_gated_layers, plan);
    expect_bits_stay(of_capacity, plan);
    expect_bits_stay(of_dropless, plan);
  }
}

// A bucket whose slot another layer of the group takes is gathered once more.
TEST(RecomputedGroups, KeepTheBitsOfGatheredParameters) {
  for (const bool gathers_ahead : {false, true}) {
    for (const char* stack : {"trivium", "fsdp"}) {
      Plan plan = split_with(1, false, 1, 2, 3);
      plan.overlap.parameter_gather = plan.overlap.gradient_reduction = gathers_ahead;
      plan.stack = stack;
      expect_bits_stay(seven_gated_layers, plan);
      expect_bits_stay(of_dropless, plan);
      plan.expert = 2;
      expect_bits_stay(of_dropless, plan);
    }
  }
  Plan away = split_with(1, false, 1, 2, 3);
  away.offload.parameters = away.offload.gradients = away.offload.optimizer = program::Storage::kHost;
  expect_bits_stay(seven_layers, away);
  expect_bits_stay(seven_layers, split_with(1, false, 2, 2, 3));
}

TEST(RecomputedGroups, KeepTheBitsOfSplitBackwards) {
  for (const auto schedule : {program::Schedule::kZeroBubble, program::Schedule::kZbv}) {
    for (const bool sequence_parallel : {false, true}) {
      Plan plan = split_with(sequence_parallel ? 2 : 1, sequence_parallel, 2, 1, 0);
      plan.schedule = schedule;
      plan.virtual_stages = program::traits_of(schedule).chunks > 0 ? 2 : 1;
      if (plan.virtual_stages > 1) plan.stage_layers = {2, 1, 1, 3};
      expect_bits_stay(seven_layers, plan);
      expect_bits_stay(of_dropless, plan);
    }
  }
}

TEST(RecomputedGroups, KeepTheBitsOfOtherBlocksAndTypes) {
  const Plan tensor = split_with(2, true, 1, 1, 0);
  const auto with = [](const JobOf& job_of, const std::function<void(program::Job&)>& change) -> JobOf {
    return [job_of, change](const Plan& plan) {
      program::Job job = job_of(plan);
      change(job);
      return job;
    };
  };
  expect_bits_stay(with(seven_layers, [](program::Job& job) { job.model.parallel_block = true; }), tensor);
  expect_bits_stay(with(seven_gated_layers, [](program::Job& job) { job.model.branch_norms = true; }), tensor);
  expect_bits_stay(with(seven_layers, [](program::Job& job) { job.training.dropout = 0.1; }), tensor);
  expect_bits_stay(with(seven_gated_layers, [](program::Job& job) { job.training.lora = {.rank = 4, .alpha = 8}; }),
                   tensor);
  expect_bits_stay(with(seven_gated_layers, [](program::Job& job) { job.model.mtp = models::MultiToken{.depth = 1}; }),
                   split_with(1, false, 2, 1, 0));
  for (const auto method : {program::ContextMethod::kRing, program::ContextMethod::kAllToAll}) {
    Plan context = split_with(1, false, 1, 1, 0);
    context.context = 2;
    context.context_method = method;
    context.attention = program::Attention::kFlash;
    expect_bits_stay(seven_gated_layers, context);
    expect_bits_stay(of_capacity, context);
  }
  for (const auto recipe : {program::Fp8::kDelayed, program::Fp8::kCurrent}) {
    Plan narrow = tensor;
    narrow.precision = program::DType::kBf16;
    narrow.fp8 = recipe;
    expect_bits_stay(with(seven_gated_layers,
                          [](program::Job& job) {
                            job.model.hidden = 64;
                            job.model.head_dim = 16;
                            job.model.ffn_hidden = 128;
                          }),
                     narrow);
  }
}

// Only chunks that recompute fully have groups.
TEST(RecomputedGroups, AreOfChunksThatRecomputeFully) {
  Plan plan = split_with(1, false, 2, 1, 0);
  const Trained kept = run(seven_layers(plan), 2);
  plan.stage_recompute = {program::Recompute::kFull, program::Recompute::kSelective};
  plan.recompute_group = 2;
  expect_equivalent(kept, seven_layers(plan), Asked::kBits, "nothing recomputed");
}

TEST(RecomputedGroups, AreRefusedWhereTheyCannotBe) {
  const auto rule = [](const Plan& plan) {
    const auto no = program::check(seven_layers(plan));
    return no ? no->rule : "";
  };
  Plan plan;
  plan.recompute_group = 2;
  EXPECT_EQ(rule(plan), "recompute-group-needs-full");
  plan.recompute = program::Recompute::kSelective;
  EXPECT_EQ(rule(plan), "recompute-group-needs-full");
  plan.recompute = program::Recompute::kFull;
  EXPECT_EQ(rule(plan), "");
  plan.recompute_layers = 1;
  EXPECT_EQ(rule(plan), "recompute-group-or-layers");
  plan.recompute_layers = 0;
  plan.recompute_group = 0;
  EXPECT_EQ(rule(plan), "recompute_group-in-range");
  plan.recompute_group = 2;
  plan.offload.activations = program::Storage::kHost;
  EXPECT_EQ(rule(plan), "offload-finds-activations");
}

}  // namespace
}  // namespace trivium::runtime::testing
