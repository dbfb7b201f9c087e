// Multi-token prediction equals its unsplit run under every split: the embedding and the output matrix that modules
// share with the model, whose gradients come from both ends of a pipeline, and tokens further on across context ranks.
#include <gtest/gtest.h>

#include "program/lower/lower.h"
#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

enum class Layers { kDense, kMixtures, kLatents };

/// Four layers, and modules whose losses count as the model's does. AdamW divides a gradient by its size: an epsilon of
/// 1e-6 keeps the rounding of gradients that are next to nothing out of the steps.
program::Job multi_token_job(const program::Plan& plan, int depth, Layers layers, bool tied = false) {
  program::Job job = toy_job(plan, 8);
  job.training.optimizer.epsilon = 1e-6;
  job.model.layers = 4;
  job.model.norm = models::Norm::kRmsNorm;
  job.model.positions = models::Positions::kRotary;
  job.model.activation = models::Activation::kSwiglu;
  job.model.linear_bias = job.model.qkv_bias = false;
  job.model.tied_embeddings = tied;
  job.model.mtp = models::MultiToken{.depth = depth, .loss_scale = 1.0 * depth};
  if (layers == Layers::kDense) return job;
  models::Experts e{.count = 4, .top_k = 2};
  e.dropless = true, e.imbalance = 4;
  e.shared_hidden = 32, e.dense_layers = 1, e.dense_hidden = 96;
  if (layers == Layers::kLatents) {  // DeepSeek-V3 in the small
    e.scores = models::Scores::kSigmoid;
    e.correction_bias = true;
    job.model.latent = models::Latent{20, 12, 6, 4, 8};
    job.model.head_dim = 10;
  }
  job.model.experts = e;
  return job;
}

struct ModuleSplit {
  int tensor, context, pipeline, data, expert, zero;
};

program::Plan plan_of(const ModuleSplit& split) {
  program::Plan plan;
  plan.tensor = split.tensor, plan.context = split.context, plan.pipeline = split.pipeline;
  plan.data = split.data, plan.expert = split.expert, plan.zero_stage = split.zero;
  if (split.context > 1) plan.attention = program::Attention::kFlash;
  return plan;
}

void expect_modules_equal(const Trained& unsplit, const ModuleSplit& split,
                          const std::function<program::Job(const program::Plan&)>& job) {
  program::Plan plan = plan_of(split);
  for (const bool sequence_parallel : {false, true}) {
    if (sequence_parallel && split.tensor == 1) continue;
    plan.sequence_parallel = sequence_parallel;
    for (const auto method : {program::ContextMethod::kRing, program::ContextMethod::kAllToAll}) {
      if (split.context == 1 && method != program::ContextMethod::kRing) continue;
      plan.context_method = method;
      expect_equivalent(unsplit, job(plan));
    }
  }
}

TEST(MultiToken, EqualsTheUnsplitRunUnderEverySplit) {
  for (const bool tied : {false, true}) {
    for (const int depth : {1, 2}) {
      const auto job = [&](const program::Plan& plan) { return multi_token_job(plan, depth, Layers::kDense, tied); };
      const Trained unsplit = run(job({}), 2);
      for (const ModuleSplit& split : std::vector<ModuleSplit>{{2, 1, 1, 1, 1, 0},
                                                               {4, 1, 1, 1, 1, 0},
                                                               {1, 2, 1, 1, 1, 0},
                                                               {1, 4, 1, 1, 1, 0},
                                                               {1, 1, 2, 1, 1, 0},
                                                               {1, 1, 4, 1, 1, 0},
                                                               {1, 1, 1, 2, 1, 1},
                                                               {1, 1, 1, 2, 1, 2},
                                                               {1, 1, 1, 2, 1, 3},
                                                               {1, 1, 2, 2, 1, 3},
                                                               {2, 2, 2, 1, 1, 1},
                                                               {2, 1, 2, 2, 1, 2}}) {
        expect_modules_equal(unsplit, split, job);
      }
    }
  }
}

TEST(MultiToken, WithExpertsEqualsTheUnsplitRunUnderEverySplit) {
  for (const Layers layers : {Layers::kMixtures, Layers::kLatents}) {
    const auto job = [&](const program::Plan& plan) { return multi_token_job(plan, 1, layers); };
    const Trained unsplit = run(job({}), 2);
    for (const ModuleSplit& split : std::vector<ModuleSplit>{{1, 1, 1, 2, 2, 0},
                                                             {1, 1, 1, 4, 4, 1},
                                                             {2, 1, 1, 2, 2, 1},
                                                             {1, 1, 2, 2, 2, 3},
                                                             {2, 1, 2, 2, 2, 2},
                                                             {2, 1, 2, 1, 1, 0},
                                                             {1, 2, 1, 2, 2, 0},
                                                             {1, 2, 2, 1, 1, 3}}) {
      if (layers == Layers::kLatents && split.context > 1) continue;
      expect_modules_equal(unsplit, split, job);
    }
  }
}

TEST(MultiToken, SchedulesRecomputationAndOffloadChangeNothing) {
  for (const bool tied : {false, true}) {
    const auto job = [&](const program::Plan& plan) { return multi_token_job(plan, 2, Layers::kDense, tied); };
    const Trained unsplit = run(job({}), 2);
    const auto expect = [&](const program::Plan& plan) { expect_equivalent(unsplit, job(plan)); };
    for (const int tensor : {1, 2}) {
      program::Plan plan;
      plan.pipeline = 2;
      plan.tensor = tensor;
      plan.sequence_parallel = tensor > 1;
      for (const auto recompute : {program::Recompute::kSelective, program::Recompute::kFull}) {
        program::Plan again = plan;
        again.recompute = recompute;
        expect(again);
        again.schedule = program::Schedule::kZeroBubble;
        expect(again);
      }
      program::Plan alone = plan;  // the head and the modules without a layer before them
      alone.stage_layers = {4, 0};
      expect(alone);
      program::Plan interleaved = plan;
      interleaved.virtual_stages = 2, interleaved.schedule = program::Schedule::kInterleaved;
      expect(interleaved);
      for (const auto schedule : {program::Schedule::kZbv, program::Schedule::kDualPipeV}) {
        program::Plan folded = interleaved;
        folded.schedule = schedule;
        expect(folded);
      }
      program::Plan away = plan;
      away.offload.optimizer = away.offload.activations = program::Storage::kHost;
      expect(away);
      program::Plan sharded = plan;
      sharded.data = 2, sharded.zero_stage = 3;
      sharded.overlap.parameter_gather = sharded.overlap.gradient_reduction = true;
      expect(sharded);
      sharded.offload.parameters = program::Storage::kHost;
      expect(sharded);
      sharded.offload.parameters = program::Storage::kNone;
      sharded.schedule = program::Schedule::kZeroBubble;
      expect(sharded);
      program::Plan buckets = plan;
      buckets.data = 2, buckets.bucket_bytes = 40'000;
      expect(buckets);
    }
  }
}

TEST(MultiToken, PassesInPairsChangeNothing) {
  const auto job = [&](const program::Plan& plan) { return multi_token_job(plan, 1, Layers::kMixtures); };
  const Trained unsplit = run(job({}), 2);
  program::Plan plan;
  plan.data = plan.expert = 2;
  plan.overlap.expert = true;
  expect_equivalent(unsplit, job(plan));
  plan.pipeline = plan.virtual_stages = 2;
  plan.schedule = program::Schedule::kInterleaved;
  expect_equivalent(unsplit, job(plan));
}

TEST(MultiToken, OffloadedGradientsAreRefusedByName) {
  program::Job job = multi_token_job({}, 1, Layers::kDense);
  job.plan.offload.gradients = program::Storage::kHost;
  const auto verdict = program::check(job);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->rule, "offload.gradients-supported");
}

TEST(MultiToken, DropoutIsRefusedByName) {
  program::Job job = multi_token_job({}, 1, Layers::kDense);
  job.training.dropout = 0.1;
  const auto verdict = program::check(job);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->rule, "mtp-supported");
  EXPECT_EQ(verdict->reason,
            "mtp is not implemented: dropout 0.1 in modules of multi-token prediction; use dropout 0, or mtp 0");
}

}  // namespace
}  // namespace trivium::runtime::testing
