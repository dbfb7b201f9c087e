// Grok-1's layers equal their unsplit run under every split: four norms a layer, capped scores, factors on embeddings
// and logits, mixtures whose weights are shares of all experts.
#include <gtest/gtest.h>

#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

program::Job grok_job(const program::Plan& plan) {
  program::Job job = toy_job(plan, 8);
  job.model.norm = models::Norm::kRmsNorm;
  job.model.positions = models::Positions::kRotary;
  job.model.activation = models::Activation::kGeglu;
  job.model.linear_bias = job.model.qkv_bias = false;
  job.model.branch_norms = true;
  job.model.attention_soft_cap = 2, job.model.embedding_scale = 4, job.model.logit_scale = 0.6;
  models::Experts e{.count = 4, .top_k = 2, .dropless = true, .imbalance = 4};
  e.normalised = false;
  job.model.experts = e;
  // Gradients of experts that few tokens visit are as small as AdamW's usual epsilon, which would make of their
  // rounding a million times as much.
  job.training.optimizer.epsilon = 1e-6;
  return job;
}

struct GrokSplit {
  int tensor, context, pipeline, data, expert, zero;
};

TEST(Grok1, EqualsTheUnsplitRunUnderEverySplit) {
  const Trained unsplit = run(grok_job({}), 2);
  for (const GrokSplit& split : {GrokSplit{2, 1, 1, 1, 1, 0},
                                 {4, 1, 1, 1, 1, 0},
                                 {1, 1, 2, 1, 1, 0},
                                 {1, 1, 1, 2, 1, 3},
                                 {1, 2, 1, 1, 1, 0},
                                 {1, 1, 1, 2, 2, 0},
                                 {2, 1, 2, 2, 2, 1},
                                 {2, 2, 1, 2, 2, 2}}) {
    program::Plan plan;
    plan.tensor = split.tensor, plan.context = split.context, plan.pipeline = split.pipeline;
    plan.data = split.data, plan.expert = split.expert, plan.zero_stage = split.zero;
    if (split.context > 1) plan.attention = program::Attention::kFlash;
    for (const auto method : {program::ContextMethod::kRing, program::ContextMethod::kAllToAll}) {
      if (split.context == 1 && method != program::ContextMethod::kRing) continue;
      plan.context_method = method;
      expect_equivalent(unsplit, grok_job(plan));
    }
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
