// Selective recomputation by module: whatever is dropped and made again, the training keeps its bits and less of its
// activations.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "program/lower/lower.h"
#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

using program::Module;
using program::Plan;
using Modules = std::vector<Module>;
using JobOf = std::function<program::Job(const Plan&)>;

program::Job dense_layers(const Plan& plan) {
  program::Job job = toy_job(plan, 8);
  job.model.layers = 4;
  return job;
}

program::Job gated_layers(const Plan& plan) {
  program::Job job = dense_layers(plan);
  job.model.norm = models::Norm::kRmsNorm;
  job.model.positions = models::Positions::kRotary;
  job.model.activation = models::Activation::kSwiglu;
  job.model.linear_bias = job.model.qkv_bias = false;
  return job;
}

/// A dense layer, then mixtures with shared experts behind latent attention, as DeepSeek-V3 has them.
program::Job mixture_layers(const Plan& plan, bool latents, bool dropless) {
  program::Job job = gated_layers(plan);
  models::Experts e{.count = 4, .top_k = 2, .dropless = dropless, .imbalance = 4};
  if (dropless) {
    e.scores = models::Scores::kSigmoid;
    e.correction_bias = true;
    e.dense_layers = 1, e.dense_hidden = 96;
    e.shared_hidden = 32;
  }
  job.model.experts = e;
  if (latents) {
    job.model.tied_embeddings = false;
    job.model.latent = models::Latent{20, 12, 6, 4, 8};
    job.model.head_dim = 10;
    job.model.attention_scale = 0.4;
  }
  return job;
}

const Modules kOfDense{Module::kCoreAttention, Module::kMlp, Module::kLayerNorm};
const Modules kOfMixtures{Module::kCoreAttention, Module::kMixture, Module::kLayerNorm, Module::kMixtureActivation};
const Modules kOfDeepseek{Module::kCoreAttention, Module::kMlp,      Module::kMixture,          Module::kSharedExperts,
                          Module::kLayerNorm,     Module::kLatentUp, Module::kMixtureActivation};

/// Every module by itself, all of them, and all but the last.
std::vector<Modules> sets_of(const Modules& all) {
  std::vector<Modules> sets{all, {all.begin(), all.end() - 1}};
  for (const Module module : all) sets.push_back({module});
  return sets;
}

std::int64_t bytes_kept(const program::Job& job) {
  const auto lowered = program::lower(job);
  std::int64_t bytes = 0;
  for (const auto& kind : std::get<program::Program>(lowered).kinds) {
    bytes += kind.bytes[static_cast<std::size_t>(program::Space::kFrame)];
    bytes += kind.bytes[static_cast<std::size_t>(program::Space::kOffloadedActivation)];
  }
  return bytes;
}

void expect_bits_kept(const JobOf& job_of, const Plan& plan, const Modules& modules, int steps = 2) {
  const Trained kept = run(job_of(plan), steps);
  ASSERT_EQ(kept.refused, "") << program::summary(plan);
  for (const Modules& dropped : sets_of(modules)) {
    Plan again = plan;
    again.recompute = program::Recompute::kSelective;
    again.recompute_modules = dropped;
    expect_equivalent(kept, job_of(again), Asked::kBits, "nothing recomputed");
    const bool ring = plan.context > 1 && plan.context_method == program::ContextMethod::kRing;
    if (ring && dropped == Modules{Module::kCoreAttention}) continue;  // it drops nothing
    EXPECT_LT(bytes_kept(job_of(again)), bytes_kept(job_of(plan))) << program::summary(again);
  }
}

Plan split_of(int tensor, bool sequence_parallel, int pipeline, int data, int zero) {
  Plan plan;
  plan.tensor = tensor, plan.sequence_parallel = sequence_parallel, plan.pipeline = pipeline, plan.data = data;
  plan.zero_stage = zero;
  plan.overlap.tensor = sequence_parallel;
  return plan;
}

const std::vector<Plan>& module_splits() {
  static const std::vector<Plan> kAll{split_of(1, false, 1, 1, 0), split_of(2, false, 1, 1, 0),
                                      split_of(2, true, 1, 1, 0), split_of(2, true, 2, 2, 1),
                                      split_of(1, false, 2, 2, 3)};
  return kAll;
}

TEST(RecomputedModules, OfDenseLayersKeepTheBitsUnderEverySplit) {
  for (const Plan& plan : module_splits()) {
    expect_bits_kept(dense_layers, plan, kOfDense);
    Plan flash = plan;
    flash.attention = program::Attention::kFlash;
    expect_bits_kept(gated_layers, flash, kOfDense);
  }
}

TEST(RecomputedModules, OfMixturesKeepTheBitsUnderEverySplit) {
  for (Plan plan : module_splits()) {
    if (plan.zero_stage < 2) plan.expert = plan.data;
    expect_bits_kept([](const Plan& p) { return mixture_layers(p, false, false); }, plan, kOfMixtures);
    expect_bits_kept([](const Plan& p) { return mixture_layers(p, true, true); }, plan, kOfDeepseek);
  }
}

TEST(RecomputedModules, OfOtherBlocksKeepTheBits) {
  for (const bool sequence_parallel : {false, true}) {
    const Plan plan = split_of(2, sequence_parallel, 1, 1, 0);
    for (const bool shared_norm : {false, true}) {
      expect_bits_kept(
          [&](const Plan& p) {
            program::Job job = dense_layers(p);
            job.model.parallel_block = true;
            job.model.shared_norm = shared_norm;
            return job;
          },
          plan, kOfDense);
    }
    // The shared MLP reads the norm that attention reads.
    for (const bool shared_norm : {false, true}) {
      expect_bits_kept(
          [&](const Plan& p) {
            program::Job job = mixture_layers(p, false, true);
            job.model.parallel_block = true;
            job.model.shared_norm = shared_norm;
            return job;
          },
          plan, {Module::kCoreAttention, Module::kSharedExperts, Module::kMixture});
    }
    expect_bits_kept(
        [](const Plan& p) {
          program::Job job = gated_layers(p);
          job.model.branch_norms = true;
          return job;
        },
        plan, kOfDense);
    expect_bits_kept(
        [](const Plan& p) {
          program::Job job = dense_layers(p);
          job.training.dropout = 0.1;
          return job;
        },
        plan, kOfDense);
  }
}

TEST(RecomputedModules, OfAdaptersKeepTheBits) {
  const auto adapted = [](const Plan& plan) {
    program::Job job = gated_layers(plan);
    job.training.lora = {.rank = 4, .alpha = 8};
    return job;
  };
  expect_bits_kept(adapted, split_of(2, true, 1, 1, 0), kOfDense);
  expect_bits_kept(adapted, split_of(1, false, 2, 1, 0), kOfDense);
  for (const bool experts : {false, true}) {
    const auto mixture = [&](const Plan& plan) {
      program::Job job = mixture_layers(plan, true, true);
      job.training.lora = {.rank = 4, .alpha = 8, .fc1 = experts, .fc2 = experts};
      return job;
    };
    // Activations that no adapter reads are not kept; moe_act is the last of the modules.
    const Modules modules(kOfDeepseek.begin(), kOfDeepseek.end() - (experts ? 0 : 1));
    expect_bits_kept(mixture, split_of(2, true, 1, 1, 0), modules);
  }
}

TEST(RecomputedModules, KeepTheBitsUnderOtherSchedulesAndOffload) {
  const auto deepseek = [](const Plan& plan) { return mixture_layers(plan, true, true); };
  for (const auto schedule : {program::Schedule::kZeroBubble, program::Schedule::kInterleaved}) {
    Plan plan = split_of(2, true, 2, 1, 0);
    plan.schedule = schedule;
    plan.virtual_stages = schedule == program::Schedule::kInterleaved ? 2 : 1;
    expect_bits_kept(gated_layers, plan, kOfDense);
    expect_bits_kept(deepseek, plan, kOfDeepseek);
  }
  Plan away = split_of(1, false, 1, 2, 1);
  away.offload.activations = program::Storage::kHost;
  expect_bits_kept(gated_layers, away, kOfDense);
}

TEST(RecomputedModules, KeepTheBitsOverContextRanks) {
  for (const auto method : {program::ContextMethod::kRing, program::ContextMethod::kAllToAll}) {
    Plan plan = split_of(1, false, 1, 1, 0);
    plan.context = 2;
    plan.context_method = method;
    plan.attention = program::Attention::kFlash;
    expect_bits_kept(gated_layers, plan, kOfDense);
    expect_bits_kept([](const Plan& p) { return mixture_layers(p, false, false); }, plan, kOfMixtures);
  }
}

TEST(RecomputedModules, KeepTheBitsOfEightBits) {
  for (const auto recipe : {program::Fp8::kDelayed, program::Fp8::kCurrent, program::Fp8::kMxfp8}) {
    for (const bool sequence_parallel : {false, true}) {
      Plan plan = split_of(sequence_parallel ? 2 : 1, sequence_parallel, 1, 1, 0);
      plan.precision = program::DType::kBf16;
      plan.fp8 = recipe;
      const auto wide = [](program::Job job) {  // for blocks of 32
        job.model.hidden = 64;
        job.model.head_dim = 16;
        job.model.ffn_hidden = 128;
        if (job.model.experts) job.model.experts->shared_hidden = 128, job.model.experts->dense_hidden = 128;
        return job;
      };
      expect_bits_kept([&](const Plan& p) { return wide(dense_layers(p)); }, plan, kOfDense);
      expect_bits_kept([&](const Plan& p) { return wide(mixture_layers(p, false, true)); }, plan,
                       {Module::kCoreAttention, Module::kMlp, Module::kMixture, Module::kSharedExperts,
                        Module::kLayerNorm, Module::kMixtureActivation});
    }
  }
}

TEST(RecomputedModules, KeepTheBitsOfPairsOfPasses) {
  Plan plan = split_of(1, false, 1, 2, 1);
  plan.expert = 2;
  plan.overlap.expert = true;
  expect_bits_kept([](const Plan& p) { return mixture_layers(p, false, true); }, plan,
                   {Module::kCoreAttention, Module::kLayerNorm, Module::kSharedExperts, Module::kMixtureActivation});
}

// The first layers of every chunk are made again whole, the others kept.
TEST(RecomputedLayers, KeepTheBitsUnderEverySplit) {
  const auto deepseek = [](const Plan& plan) { return mixture_layers(plan, true, true); };
  for (const Plan& plan : module_splits()) {
    for (const JobOf& job_of : {JobOf(dense_layers), JobOf(deepseek)}) {
      const Trained kept = run(job_of(plan), 2);
      std::int64_t before = bytes_kept(job_of(plan));
      for (int layers = 1; layers < 4 / plan.pipeline; ++layers) {
        Plan again = plan;
        again.recompute = program::Recompute::kFull;
        again.recompute_layers = layers;
        expect_equivalent(kept, job_of(again), Asked::kBits, "nothing recomputed");
        EXPECT_LT(bytes_kept(job_of(again)), before) << program::summary(again);
        before = bytes_kept(job_of(again));
      }
    }
  }
  Plan folded = split_of(2, true, 2, 1, 0);
  folded.schedule = program::Schedule::kZeroBubble;
  const Trained kept = run(gated_layers(folded), 2);
  folded.recompute = program::Recompute::kFull;
  folded.recompute_layers = 1;
  expect_equivalent(kept, gated_layers(folded), Asked::kBits, "nothing recomputed");
  Plan none;
  none.recompute_layers = 1;
  EXPECT_EQ(program::check(dense_layers(none))->rule, "recompute-layers-need-full");
}

TEST(RecomputedModules, AreRefusedWhereThereAreNone) {
  const auto rule = [](const program::Job& job) {
    const auto no = program::check(job);
    return no ? no->rule : "";
  };
  Plan plan;
  plan.recompute_modules = {Module::kMlp};
  EXPECT_EQ(rule(dense_layers(plan)), "recompute-modules-need-selective");
  plan.recompute = program::Recompute::kSelective;
  EXPECT_EQ(rule(dense_layers(plan)), "");
  for (const Module module :
       {Module::kMixture, Module::kMixtureActivation, Module::kSharedExperts, Module::kLatentUp}) {
    plan.recompute_modules = {module};
    EXPECT_EQ(rule(dense_layers(plan)), "recompute-modules-of-the-model");
  }
  plan.recompute_modules = {Module::kMlp};
  EXPECT_EQ(rule(mixture_layers(plan, false, false)), "recompute-modules-of-the-model");
  plan.recompute_modules = {Module::kMixture};
  plan.expert = plan.data = 2;
  plan.overlap.expert = true;
  EXPECT_EQ(rule(mixture_layers(plan, false, true)), "overlap.expert-supported");
}

}  // namespace
}  // namespace trivium::runtime::testing
