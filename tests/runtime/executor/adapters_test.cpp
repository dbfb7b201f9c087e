// LoRA: adapters are trained as the gradients of the weights they add to say, splits equal the unsplit run, and frozen
// weights keep every bit.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/runtime/executor/adapted.h"
#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

program::Job adapted_job(const program::Plan& plan, bool adapted = true, std::int64_t batch = 8) {
  program::Job job = toy_job(plan, batch);
  job.model.layers = 4;
  return adapted ? with_adapters(job) : job;
}

/// Shared key heads, gated MLPs, rotary positions, norms of heads, no biases.
program::Job adapted_llama(const program::Plan& plan, bool adapted = true) {
  program::Job job = adapted_job(plan, adapted);
  job.model.kv_heads = 2;
  job.model.positions = models::Positions::kRotary;
  job.model.activation = models::Activation::kSwiglu;
  job.model.norm = models::Norm::kRmsNorm;
  job.model.linear_bias = job.model.qkv_bias = false;
  job.model.head_norms = true;
  job.model.tied_embeddings = false;
  return job;
}

TEST(Adapters, SecondFactorsHaveTheGradientOfTheirWeightByWayOfTheFirst) {
  expect_gradients_by_way_of_weights(adapted_job({}), adapted_job({}, false), 4 * 4);
  expect_gradients_by_way_of_weights(adapted_llama({}), adapted_llama({}, false), 4 * 4);
}

TEST(Adapters, GradientsAreThoseOfFiniteDifferences) {
  expect_gradients_of_finite_differences(adapted_llama({}), {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"});
}

struct AdapterSplit {
  int tensor, context, pipeline, data, zero;
};

void expect_adapters_equal(const Trained& unsplit, const AdapterSplit& split,
                           program::Job (*make)(const program::Plan&, bool), program::Plan plan = {}) {
  plan.tensor = split.tensor, plan.context = split.context, plan.pipeline = split.pipeline;
  plan.data = split.data, plan.zero_stage = split.zero;
  if (split.context > 1) plan.attention = program::Attention::kFlash;
  for (const bool sequence_parallel : {false, true}) {
    if (sequence_parallel && split.tensor == 1) continue;
    plan.sequence_parallel = sequence_parallel;
    expect_equivalent(unsplit, make(plan, true));
  }
}

program::Job adapted_gpt(const program::Plan& plan, bool adapted) { return adapted_job(plan, adapted); }

TEST(Adapters, EqualTheUnsplitRunUnderEverySplit) {
  for (const auto make : {adapted_gpt, adapted_llama}) {
    const Trained unsplit = run(make({}, true), 3);
    for (const AdapterSplit& split : std::vector<AdapterSplit>{{2, 1, 1, 1, 0},
                                                               {4, 1, 1, 1, 0},
                                                               {1, 1, 2, 1, 0},
                                                               {1, 1, 4, 1, 0},
                                                               {1, 1, 1, 2, 0},
                                                               {1, 1, 1, 2, 1},
                                                               {1, 1, 1, 4, 2},
                                                               {1, 1, 1, 2, 3},
                                                               {1, 1, 1, 4, 3},
                                                               {1, 2, 1, 1, 0},
                                                               {2, 1, 2, 2, 1},
                                                               {2, 1, 1, 2, 3},
                                                               {1, 1, 2, 2, 3},
                                                               {1, 2, 2, 2, 2},
                                                               {4, 1, 2, 1, 0}}) {
      expect_adapters_equal(unsplit, split, make);
    }
  }
}

TEST(Adapters, RecomputationBucketsOverlapAndInterleavingChangeNothing) {
  const Trained unsplit = run(adapted_llama({}), 3);
  for (const auto recompute : {program::Recompute::kNone, program::Recompute::kSelective, program::Recompute::kFull}) {
    for (const std::int64_t bucket : {0, 2000, 1 << 20}) {
      for (const int zero : {0, 1, 3}) {
        program::Plan plan;
        plan.recompute = recompute;
        plan.bucket_bytes = bucket;
        plan.overlap.gradient_reduction = plan.overlap.parameter_gather = zero > 0;
        plan.overlap.tensor = bucket > 0;
        plan.virtual_stages = 2, plan.schedule = program::Schedule::kInterleaved;
        expect_adapters_equal(unsplit, {2, 1, 2, 2, zero}, adapted_llama, plan);
      }
    }
  }
}

TEST(Adapters, EqualTheUnsplitRunWithSomeTargetsAlone) {
  for (const bool attention : {true, false}) {
    const auto make = [&](const program::Plan& plan) {
      program::Job job = adapted_llama(plan);
      program::Lora& lora = job.training.lora;
      lora.qkv = lora.projection = attention;
      lora.fc1 = lora.fc2 = !attention;
      return job;
    };
    const Trained unsplit = run(make({}), 3);
    program::Plan split;
    split.tensor = split.pipeline = split.data = 2;
    split.sequence_parallel = true;
    split.zero_stage = 3;
    expect_equivalent(unsplit, make(split));
    split.recompute = program::Recompute::kFull;
    expect_equivalent(unsplit, make(split));
  }
}

TEST(Adapters, FrozenWeightsKeepTheirBitsAndHaveNoMoments) {
  program::Plan plan;
  plan.data = plan.tensor = 2;
  for (const int zero : {0, 1, 3}) {
    plan.zero_stage = zero;
    const Trained still = run(standing_still(adapted_job(plan, false)), 1), moved = run(adapted_job(plan), 3);
    for (const auto& [name, values] : still.parameters) EXPECT_EQ(moved.parameters.at(name), values) << name;
    EXPECT_EQ(moved.parameters.size(), still.parameters.size() + 8 * 4);
    EXPECT_EQ(moved.first_moments.size(), 8U * 4);
    for (const auto& [name, values] : moved.first_moments) EXPECT_TRUE(is_adapter(name)) << name;
    const Trained begin = run(standing_still(adapted_job(plan)), 1);
    for (const auto& [name, values] : moved.second_moments) {
      EXPECT_NE(begin.parameters.at(name), moved.parameters.at(name)) << name;
    }
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
