// Llama 4's layers equal their unsplit run under every split: chunks in a ring and in parts of heads, layers without
// positions whose queries grow, norms of heads without weights, gates on what experts read.
#include <gtest/gtest.h>

#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

/// Chunks of `chunk` of 16 tokens; of four layers the third sees all, the second and the fourth are mixtures of four
/// experts, whose rows are counted, or have a capacity that some tokens find exhausted.
program::Job llama4_job(const program::Plan& plan, std::int64_t chunk, bool dropless = true) {
  program::Job job = toy_job(plan, 8);
  job.model.layers = 4;
  job.model.norm = models::Norm::kRmsNorm;
  job.model.positions = models::Positions::kRotary;
  job.model.activation = models::Activation::kSwiglu;
  job.model.linear_bias = job.model.qkv_bias = job.model.tied_embeddings = false;
  job.model.plain_head_norms = true;
  job.model.window = models::Window{.keys = chunk, .full_every = 3, .chunked = true, .plain_full = true};
  job.model.temperature = models::Temperature{.slope = 0.5, .run = 3};
  models::Experts e{.count = 4, .top_k = dropless ? 1 : 2, .every = 2, .capacity_factor = 0.75};
  e.dropless = dropless, e.imbalance = 4;
  e.scores = models::Scores::kSigmoid;
  e.scales_input = true, e.normalised = !dropless;
  e.shared_hidden = 32, e.dense_hidden = 96;
  job.model.experts = e;
  return job;
}

struct Llama4Split {
  int tensor, context, pipeline, data, expert, zero;
};

void expect_equal(const Trained& unsplit, const Llama4Split& split, std::int64_t chunk, bool dropless) {
  program::Plan plan;
  plan.tensor = split.tensor, plan.context = split.context, plan.pipeline = split.pipeline;
  plan.data = split.data, plan.expert = split.expert, plan.zero_stage = split.zero;
  if (split.context > 1) plan.attention = program::Attention::kFlash;
  for (const bool sequence_parallel : {false, true}) {
    if (sequence_parallel && split.tensor == 1) continue;
    plan.sequence_parallel = sequence_parallel;
    for (const auto method : {program::ContextMethod::kRing, program::ContextMethod::kAllToAll}) {
      if (split.context == 1 && method != program::ContextMethod::kRing) continue;
      plan.context_method = method;
      expect_equivalent(unsplit, llama4_job(plan, chunk, dropless));
    }
  }
}

const std::vector<Llama4Split> kSplits = {{2, 1, 1, 1, 1, 0}, {4, 1, 1, 1, 1, 0}, {1, 2, 1, 1, 1, 0},
                                          {1, 4, 1, 1, 1, 0}, {1, 1, 4, 1, 1, 0}, {1, 1, 1, 4, 4, 1},
                                          {2, 2, 1, 2, 2, 2}, {2, 1, 2, 2, 2, 1}, {1, 1, 2, 2, 1, 3},
                                          {2, 2, 2, 1, 1, 0}, {1, 1, 1, 2, 2, 3}};

// Chunks that a ring's chunks divide, and that lie across them.
TEST(Llama4, EqualsTheUnsplitRunUnderEverySplit) {
  for (const std::int64_t chunk : {4, 5}) {
    const Trained unsplit = run(llama4_job({}, chunk), 2);
    for (const Llama4Split& split : kSplits) expect_equal(unsplit, split, chunk, true);
  }
}

TEST(Llama4, GatesOnWhatExpertsReadGoWithCapacitiesToo) {
  const Trained unsplit = run(llama4_job({}, 5, false), 2);
  for (const Llama4Split& split : kSplits) expect_equal(unsplit, split, 5, false);
}

TEST(Llama4, RecomputationSplitBackwardsAndOffloadedActivationsChangeNothing) {
  const Trained unsplit = run(llama4_job({}, 5), 2);
  program::Plan plan;
  plan.tensor = plan.pipeline = 2;
  for (const bool sequence_parallel : {false, true}) {
    plan.sequence_parallel = sequence_parallel;
    for (const auto recompute : {program::Recompute::kSelective, program::Recompute::kFull}) {
      program::Plan again = plan;
      again.recompute = recompute;
      expect_equivalent(unsplit, llama4_job(again, 5));
    }
    program::Plan split = plan;
    split.schedule = program::Schedule::kZeroBubble;
    expect_equivalent(unsplit, llama4_job(split, 5));
    program::Plan away = plan;
    away.offload.activations = program::Storage::kHost;
    expect_equivalent(unsplit, llama4_job(away, 5));
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
