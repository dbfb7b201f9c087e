// BLOOM's layers (ALiBi, a norm behind the embedding, tied embeddings) equal their unsplit run under every split.
#include <gtest/gtest.h>

#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

program::Job bloom_job(const program::Plan& plan) {
  program::Job job = toy_job(plan, 8);
  job.model.positions = models::Positions::kAlibi;
  job.model.embedding_norm = true;
  return job;
}

struct BloomSplit {
  int tensor, context, pipeline, data, zero;
};

TEST(Bloom, EqualsTheUnsplitRunUnderEverySplit) {
  const Trained unsplit = run(bloom_job({}), 2);
  ASSERT_EQ(unsplit.refused, "");
  for (const BloomSplit& split : {BloomSplit{1, 1, 1, 1, 0},
                                  {2, 1, 1, 1, 0},
                                  {4, 1, 1, 1, 0},
                                  {1, 1, 2, 1, 0},
                                  {1, 1, 1, 2, 3},
                                  {1, 2, 1, 1, 0},
                                  {2, 1, 2, 2, 1}}) {
    for (const auto attention : {program::Attention::kFlash, program::Attention::kUnfused}) {
      program::Plan plan;
      plan.tensor = split.tensor, plan.context = split.context, plan.pipeline = split.pipeline;
      plan.data = split.data, plan.zero_stage = split.zero;
      plan.sequence_parallel = split.tensor > 1;
      plan.attention = attention;
      plan.context_method = program::ContextMethod::kAllToAll;
      expect_equivalent(unsplit, bloom_job(plan));
    }
  }
}

// Both are part of what is trained: without either the loss is another.
TEST(Bloom, BiasAndNormAreNotIgnored) {
  program::Job plain = bloom_job({}), normless = bloom_job({});
  plain.model.positions = models::Positions::kNone;
  normless.model.embedding_norm = false;
  const Trained whole = run(bloom_job({}), 2);
  EXPECT_NE(whole.losses, run(plain, 2).losses);
  EXPECT_NE(whole.losses, run(normless, 2).losses);
}

TEST(Bloom, RingsAreRefused) {
  program::Plan plan;
  plan.context = 2;
  plan.attention = program::Attention::kFlash;
  plan.context_method = program::ContextMethod::kRing;
  EXPECT_NE(run(bloom_job(plan), 1).refused.find("ring with ALiBi"), std::string::npos);
}

}  // namespace
}  // namespace trivium::runtime::testing
