// Fewer key heads than tensor ranks: several ranks hold the same ones, and it changes nothing.
#include <gtest/gtest.h>

#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

/// Four query heads on `kv_heads` key heads; `llama`: rotary, gated, without biases, untied.
program::Job grouped_job(const program::Plan& plan, std::int64_t kv_heads, bool llama) {
  program::Job job = toy_job(plan, 4);
  job.model.layers = 2;
  job.model.kv_heads = kv_heads;
  if (llama) {
    job.model.norm = models::Norm::kRmsNorm;
    job.model.positions = models::Positions::kRotary;
    job.model.activation = models::Activation::kSwiglu;
    job.model.linear_bias = job.model.qkv_bias = job.model.tied_embeddings = false;
  }
  return job;
}

program::Plan plan_of(int tensor, int pipeline, int data, int zero) {
  program::Plan plan;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  plan.data = data;
  plan.zero_stage = zero;
  plan.sequence_parallel = zero % 2 == 0;
  return plan;
}

TEST(SharedKeys, EverySplitEqualsTheUnsplitRun) {
  for (const bool llama : {false, true}) {
    for (const std::int64_t kv_heads : {1, 2}) {
      const Trained unsplit = run(grouped_job({}, kv_heads, llama), 2);
      for (const program::Plan& plan : {plan_of(2, 1, 1, 0), plan_of(4, 1, 1, 0), plan_of(4, 2, 1, 1),
                                        plan_of(4, 1, 2, 1), plan_of(4, 1, 2, 2), plan_of(4, 1, 2, 3)}) {
        expect_equivalent(unsplit, grouped_job(plan, kv_heads, llama));
      }
    }
  }
}

TEST(SharedKeys, WithContextRecomputationOverlapAndSplitBackwardsTheyEqualTheUnsplitRun) {
  const Trained unsplit = run(grouped_job({}, 2, true), 2);
  std::vector<program::Plan> plans(4, plan_of(4, 1, 2, 0));
  plans[0].data = 1, plans[0].context = 2, plans[0].attention = program::Attention::kFlash;
  plans[1].recompute = program::Recompute::kFull, plans[1].overlap.gradient_reduction = true;
  plans[1].overlap.tensor = true;
  plans[2].data = 1, plans[2].pipeline = 2, plans[2].schedule = program::Schedule::kZeroBubble;
  plans[3].zero_stage = 3, plans[3].overlap.parameter_gather = plans[3].overlap.gradient_reduction = true;
  plans[3].bucket_bytes = 50'000, plans[3].placement = "data-pipeline-tensor-context";
  for (const program::Plan& plan : plans) expect_equivalent(unsplit, grouped_job(plan, 2, true));
  program::Plan heads = plan_of(2, 1, 1, 0);  // one key head for two tensor and two context ranks
  heads.context = 2, heads.context_method = program::ContextMethod::kAllToAll;
  expect_equivalent(run(grouped_job({}, 1, true), 2), grouped_job(heads, 1, true));
}

TEST(Mutation, SkippedSumsOfSharedKeysAreSeen) {
  const auto skip = [](program::Program& program) {
    for (program::Body& body : program.bodies) {
      for (program::Op& op : body.ops) {
        if (op.group == program::Group::kKeys) op.elements = 0;
      }
    }
  };
  std::string where;
  const Trained unsplit = run(grouped_job({}, 2, false), 2);
  EXPECT_GT(difference(unsplit, run(grouped_job(plan_of(4, 1, 1, 0), 2, false), 2, skip), where), kTolerance) << where;
}

TEST(Mutation, SharedKeysCountedTwiceInTheGradientNormAreSeen) {
  const auto count_twice = [](program::Program& program) {
    for (program::ChunkTemplate& kind : program.kinds) {
      for (program::Parameter& p : kind.parameters) p.key_columns = 0;
    }
  };
  std::string where;
  const Trained unsplit = run(grouped_job({}, 2, false), 2);
  EXPECT_GT(difference(unsplit, run(grouped_job(plan_of(4, 1, 1, 0), 2, false), 2, count_twice), where), kTolerance)
      << where;
}

}  // namespace
}  // namespace trivium::runtime::testing
