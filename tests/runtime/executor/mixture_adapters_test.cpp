// LoRA in mixtures of experts, latent attention and beside sinks: adapters have the gradients that the weights they add
// to say, splits equal the unsplit run, and all else keeps its bits.
#include <gtest/gtest.h>

#include <functional>
#include <tuple>

#include "tests/runtime/executor/adapted.h"
#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

using AdaptedModel = program::Job (*)(const program::Plan&);

program::Job four_layers(const program::Plan& plan) {
  program::Job job = toy_job(plan, 8);
  job.model.layers = 4;
  job.model.norm = models::Norm::kRmsNorm;
  job.model.positions = models::Positions::kRotary;
  job.model.activation = models::Activation::kSwiglu;
  job.model.linear_bias = job.model.qkv_bias = job.model.tied_embeddings = false;
  job.training.optimizer.epsilon = 1e-6;  // experts that few tokens chose have tiny gradients
  return job;
}

/// As Mixtral's, with a capacity that some tokens find exhausted.
program::Job mixtral(const program::Plan& plan) {
  program::Job job = four_layers(plan);
  job.model.kv_heads = 2;
  models::Experts e{.count = 4, .top_k = 2, .capacity_factor = 0.75};
  e.balance_loss = 0.1;
  job.model.experts = e;
  return job;
}

/// As DeepSeek-V3's: latent attention, sigmoids, no capacity, an MLP that all tokens visit, a dense layer before.
program::Job deepseek(const program::Plan& plan) {
  program::Job job = four_layers(plan);
  job.model.latent = models::Latent{20, 12, 6, 4, 8};
  job.model.head_dim = 10;
  job.model.attention_scale = 0.4;
  models::Experts e{.count = 4, .top_k = 2, .dropless = true, .imbalance = 4};
  e.balance_loss = 0.1;
  e.scores = models::Scores::kSigmoid;
  e.correction_bias = true, e.scale = 2.5;
  e.groups = 2, e.top_groups = 1, e.group_best = 2;
  e.shared_hidden = 32, e.dense_layers = 1, e.dense_hidden = 96;
  job.model.experts = e;
  return job;
}

/// Latents of keys and values alone, as DeepSeek-V2-Lite's.
program::Job deepseek_lite(const program::Plan& plan) {
  program::Job job = deepseek(plan);
  job.model.latent->query_rank = 0;
  return job;
}

/// As gpt-oss: sinks, biases of experts and of products, windows.
program::Job gpt_oss(const program::Plan& plan) {
  program::Job job = four_layers(plan);
  job.model.activation = models::Activation::kClampedSwiglu;
  job.model.linear_bias = job.model.qkv_bias = true;
  job.model.attention_sinks = true;
  job.model.window = models::Window{.keys = 5, .full_every = 2};
  models::Experts e{.count = 4, .top_k = 2, .dropless = true, .imbalance = 4};
  job.model.experts = e;
  return job;
}

/// As Llama 4: gates on what experts read, every second layer dense.
program::Job llama4(const program::Plan& plan) {
  program::Job job = four_layers(plan);
  models::Experts e{.count = 4, .top_k = 1, .every = 2, .dropless = true, .imbalance = 4};
  e.scores = models::Scores::kSigmoid;
  e.scales_input = true, e.normalised = false;
  e.shared_hidden = 32, e.dense_hidden = 96;
  job.model.experts = e;
  return job;
}

constexpr AdaptedModel kAdaptedModels[] = {mixtral, deepseek, deepseek_lite, gpt_oss, llama4};

// Of DeepSeek's four layers one is dense: attention has four adapters (three in front of the core), the dense MLP two,
// the three mixtures four each.
TEST(MixtureAdapters, SecondFactorsHaveTheGradientOfTheirWeightByWayOfTheFirst) {
  expect_gradients_by_way_of_weights(with_adapters(mixtral({})), mixtral({}), 4 * 4);
  expect_gradients_by_way_of_weights(with_adapters(deepseek({})), deepseek({}), 4 * 4 + 2 + 3 * 4);
  expect_gradients_by_way_of_weights(with_adapters(deepseek_lite({})), deepseek_lite({}), 4 * 4 + 2 + 3 * 4);
  expect_gradients_by_way_of_weights(with_adapters(gpt_oss({})), gpt_oss({}), 4 * 4);
  expect_gradients_by_way_of_weights(with_adapters(llama4({})), llama4({}), 4 * 2 + 2 * 2 + 2 * 4);
}

// Choices of experts jump, so that a step may not change any: seen where losses of both sides differ by far.
TEST(MixtureAdapters, GradientsAreThoseOfFiniteDifferences) {
  expect_gradients_of_finite_differences(
      with_adapters(deepseek({})), {"attn.latents", "attn.query_heads", "attn.key_heads", "attn.c_proj",
                                    "mlp.experts.c_fc", "mlp.experts.c_proj", "mlp.shared.c_fc", "mlp.shared.c_proj"});
  expect_gradients_of_finite_differences(with_adapters(gpt_oss({})),
                                         {"attn.c_attn", "attn.c_proj", "mlp.experts.c_fc", "mlp.experts.c_proj"});
}

/// Tensor ranks, of them those that split an expert (0: all), context, pipeline, data, expert, ZeRO.
using MixtureSplit = std::tuple<int, int, int, int, int, int, int>;

program::Plan mixture_plan(const MixtureSplit& split) {
  program::Plan plan;
  std::tie(plan.tensor, plan.expert_tensor, plan.context, plan.pipeline, plan.data, plan.expert, plan.zero_stage) =
      split;
  if (plan.context > 1) plan.attention = program::Attention::kFlash;
  return plan;
}

void expect_split_equal(const Trained& unsplit, program::Plan plan,
                        const std::function<program::Job(const program::Plan&)>& make) {
  for (const bool sequence_parallel : {false, true}) {
    if (sequence_parallel && plan.tensor == 1) continue;
    plan.sequence_parallel = sequence_parallel;
    expect_equivalent(unsplit, make(plan));
  }
}

TEST(MixtureAdapters, EqualTheUnsplitRunUnderEverySplit) {
  for (const AdaptedModel model : kAdaptedModels) {
    const auto make = [&](const program::Plan& plan) { return with_adapters(model(plan)); };
    const Trained unsplit = run(make({}), 2);
    ASSERT_EQ(unsplit.refused, "");
    for (const MixtureSplit& split : std::vector<MixtureSplit>{{2, 0, 1, 1, 1, 1, 0},
                                                               {4, 0, 1, 1, 1, 1, 0},
                                                               {1, 0, 1, 1, 2, 2, 0},
                                                               {1, 0, 1, 1, 4, 2, 1},
                                                               {1, 0, 1, 1, 4, 2, 3},
                                                               {1, 0, 1, 1, 2, 1, 3},
                                                               {1, 0, 1, 4, 1, 1, 0},
                                                               {1, 0, 2, 1, 1, 1, 0},
                                                               {2, 0, 1, 2, 2, 2, 2},
                                                               {2, 1, 1, 1, 2, 4, 1},
                                                               {2, 1, 1, 1, 2, 2, 3},
                                                               {4, 2, 1, 1, 2, 2, 3},
                                                               {2, 0, 2, 1, 2, 2, 3}}) {
      expect_split_equal(unsplit, mixture_plan(split), make);
    }
  }
}

TEST(MixtureAdapters, RecomputationBucketsOverlapAndSchedulesChangeNothing) {
  for (const AdaptedModel model : kAdaptedModels) {
    const auto make = [&](const program::Plan& plan) { return with_adapters(model(plan)); };
    const Trained unsplit = run(make({}), 2);
    for (const auto recompute :
         {program::Recompute::kNone, program::Recompute::kSelective, program::Recompute::kFull}) {
      for (const std::int64_t bucket : {0, 1 << 20}) {
        for (const int zero : {1, 3}) {
          program::Plan plan = mixture_plan({2, 0, 1, 2, 2, 2, zero});
          plan.recompute = recompute;
          plan.bucket_bytes = bucket;
          plan.overlap.gradient_reduction = plan.overlap.parameter_gather = true;
          plan.overlap.tensor = bucket > 0;
          plan.virtual_stages = 2, plan.schedule = program::Schedule::kInterleaved;
          expect_split_equal(unsplit, plan, make);
        }
      }
    }
  }
}

TEST(MixtureAdapters, RecomputedModulesChangeNothing) {
  using program::Module;
  const auto make = [](const program::Plan& plan) { return with_adapters(deepseek(plan)); };
  const auto lite = [](const program::Plan& plan) { return with_adapters(deepseek_lite(plan)); };
  const Trained unsplit = run(make({}), 2), unsplit_lite = run(lite({}), 2);
  program::Plan plan = mixture_plan({2, 0, 1, 1, 2, 2, 0});
  plan.recompute = program::Recompute::kSelective;
  for (const std::vector<Module>& modules : std::vector<std::vector<Module>>{
           {Module::kMixture},
           {Module::kMixtureActivation},
           {Module::kSharedExperts},
           {Module::kLatentUp},
           {Module::kLayerNorm},
           {Module::kMlp},
           {Module::kCoreAttention, Module::kLatentUp, Module::kLayerNorm, Module::kMixtureActivation}}) {
    plan.recompute_modules = modules;
    expect_split_equal(unsplit, plan, make);
    expect_split_equal(unsplit_lite, plan, lite);
  }
}

TEST(MixtureAdapters, PassesInPairsKeepTheBitsOfTheSameSplit) {
  for (const AdaptedModel model : {mixtral, deepseek}) {
    for (const int zero : {0, 1}) {
      program::Plan plan = mixture_plan({2, 1, 1, 2, 2, 2, zero});
      plan.virtual_stages = 2, plan.schedule = program::Schedule::kInterleaved;
      plan.sequence_parallel = true;
      const auto make = [&] { return with_adapters(model(plan)); };
      const Trained apart = run(make(), 2);
      ASSERT_EQ(apart.refused, "");
      plan.overlap.expert = true;
      expect_equivalent(apart, make(), Asked::kBits, "without overlap.expert");
    }
  }
}

TEST(MixtureAdapters, EqualTheUnsplitRunWithSomeTargetsAlone) {
  for (const AdaptedModel model : kAdaptedModels) {
    for (const int target : {0, 1, 2, 3}) {
      const auto make = [&](const program::Plan& plan) {
        program::Job job = with_adapters(model(plan));
        program::Lora& lora = job.training.lora;
        lora.qkv = target == 0, lora.projection = target == 1, lora.fc1 = target == 2, lora.fc2 = target == 3;
        return job;
      };
      const Trained unsplit = run(make({}), 2);
      program::Plan split = mixture_plan({2, 0, 1, 2, 2, 2, 3});
      expect_split_equal(unsplit, split, make);
      split.recompute = program::Recompute::kFull;
      expect_split_equal(unsplit, split, make);
    }
  }
}

TEST(MixtureAdapters, FrozenWeightsKeepTheirBitsAndHaveNoMoments) {
  for (const AdaptedModel model : kAdaptedModels) {
    for (const int zero : {0, 1, 3}) {
      const program::Plan plan = mixture_plan({2, 0, 1, 1, 2, 2, zero});
      const Trained still = run(standing_still(model(plan)), 1), moved = run(with_adapters(model(plan)), 3);
      std::size_t adapters = 0;
      for (const auto& [name, values] : moved.parameters) {
        if (is_adapter(name)) {
          ++adapters;
        } else {
          EXPECT_EQ(still.parameters.at(name), values) << name;
        }
      }
      EXPECT_EQ(moved.parameters.size(), still.parameters.size() + adapters);
      EXPECT_EQ(moved.first_moments.size(), adapters);
      const Trained begin = run(standing_still(with_adapters(model(plan))), 1);
      for (const auto& [name, values] : moved.first_moments) {
        ASSERT_TRUE(is_adapter(name)) << name;
        EXPECT_NE(begin.parameters.at(name), moved.parameters.at(name)) << name;
      }
    }
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
