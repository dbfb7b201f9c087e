// Latent attention equals its unsplit run under every split that takes it.
#include <gtest/gtest.h>

#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

/// Four heads whose values are narrower than keys; with a latent of queries or without.
program::Job latent_job(const program::Plan& plan, std::int64_t query_rank) {
  program::Job job = toy_job(plan, 8);
  job.model.layers = 4;
  job.model.norm = models::Norm::kRmsNorm;
  job.model.positions = models::Positions::kRotary;
  job.model.activation = models::Activation::kSwiglu;
  job.model.linear_bias = job.model.qkv_bias = job.model.tied_embeddings = false;
  job.model.latent = models::Latent{query_rank, 12, 6, 4, 8};
  job.model.head_dim = 10;
  job.model.attention_scale = 0.4;
  return job;
}

TEST(LatentAttention, EqualsTheUnsplitRunUnderEverySplit) {
  for (const std::int64_t query_rank : {20, 0}) {
    const Trained unsplit = run(latent_job({}, query_rank), 2);
    for (const auto attention : {program::Attention::kUnfused, program::Attention::kFlash}) {
      for (const auto& [tensor, sequence_parallel, pipeline, data, zero] :
           std::vector<std::tuple<int, bool, int, int, int>>{{1, false, 1, 1, 0},
                                                             {2, false, 1, 1, 0},
                                                             {2, true, 1, 1, 0},
                                                             {4, true, 1, 2, 1},
                                                             {2, true, 2, 2, 2},
                                                             {2, false, 2, 2, 3},
                                                             {1, false, 4, 2, 0}}) {
        program::Plan plan;
        plan.tensor = tensor;
        plan.sequence_parallel = sequence_parallel;
        plan.overlap.tensor = sequence_parallel;
        plan.pipeline = pipeline;
        plan.data = data;
        plan.zero_stage = zero;
        plan.attention = attention;
        expect_equivalent(unsplit, latent_job(plan, query_rank));
      }
    }
  }
}

TEST(LatentAttention, RecomputationSplitBackwardsAndOffloadedActivationsChangeNothing) {
  for (const std::int64_t query_rank : {20, 0}) {
    const Trained unsplit = run(latent_job({}, query_rank), 2);
    const auto expect = [&](const program::Plan& plan) { expect_equivalent(unsplit, latent_job(plan, query_rank)); };
    program::Plan plan;
    plan.tensor = plan.pipeline = 2;
    for (const bool sequence_parallel : {false, true}) {
      plan.sequence_parallel = sequence_parallel;
      for (const auto recompute : {program::Recompute::kSelective, program::Recompute::kFull}) {
        program::Plan again = plan;
        again.recompute = recompute;
        expect(again);
      }
      program::Plan split = plan;
      split.schedule = program::Schedule::kZeroBubble;
      expect(split);
      split.recompute = program::Recompute::kFull;
      expect(split);
      program::Plan away = plan;
      away.offload.activations = program::Storage::kHost;
      expect(away);
    }
  }
}

TEST(LatentAttention, EqualsTheUnsplitRunOverContextRanks) {
  using program::ContextMethod;
  for (const std::int64_t query_rank : {20, 0}) {
    const Trained unsplit = run(latent_job({}, query_rank), 2);
    for (const auto method : {ContextMethod::kRing, ContextMethod::kAllToAll}) {
      for (const auto& [context, tensor, pipeline, data, zero] : std::vector<std::tuple<int, int, int, int, int>>{
               {2, 1, 1, 1, 0}, {4, 1, 1, 1, 0}, {2, 2, 1, 1, 0}, {2, 2, 2, 1, 0}, {2, 1, 1, 2, 3}}) {
        program::Plan plan;
        plan.context = context;
        plan.context_method = method;
        plan.tensor = tensor;
        plan.sequence_parallel = tensor > 1;
        plan.pipeline = pipeline;
        plan.data = data;
        plan.zero_stage = zero;
        plan.attention = program::Attention::kFlash;
        expect_equivalent(unsplit, latent_job(plan, query_rank));
        for (const auto recompute : {program::Recompute::kSelective, program::Recompute::kFull}) {
          plan.recompute = recompute;
          expect_equivalent(unsplit, latent_job(plan, query_rank));
        }
        plan.recompute = program::Recompute::kSelective;
        plan.recompute_modules = {program::Module::kLatentUp};
        expect_equivalent(unsplit, latent_job(plan, query_rank));
        if (context < 4 || method != ContextMethod::kRing) continue;
        plan.context_heads = 2;
        expect_equivalent(unsplit, latent_job(plan, query_rank));
      }
    }
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
