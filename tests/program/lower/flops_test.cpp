#include <gtest/gtest.h>

#include "models/load.h"
#include "program/lower/layout.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

/// FLOPs of one step over all ranks.
double step_flops(const Job& job) {
  const Program program = lowered(job);
  double sum = 0;
  for_each_op(program, [&](const Role&, const Task&, const Op& op) { sum += op.flops; });
  return sum * program.mesh.tensor() * program.mesh.context() * program.mesh.data();
}

// The tiny model at s = 16, l = 4, h = 32, V = 64, per token: 72 l h^2 = 294,912, 12 l s h = 24,576, 6 h V = 12,288:
// 331,776. A step is 8 x 16 = 128 tokens: 42,467,328.
constexpr double kStep = 42467328;

TEST(LoweredFlops, OfAnUnsplitStepAreTheModelsOwn) {
  EXPECT_EQ(step_flops(tiny_job()), kStep);
  EXPECT_EQ(models::flops_per_token(tiny_model(), 16).model * 128, kStep);
}

TEST(LoweredFlops, DoNotChangeWhenTheStepIsSplit) {
  for (const int tensor : {1, 2, 4}) {
    for (const int pipeline : {1, 2, 4}) {
      for (const int data : {1, 2}) {
        for (const int micro_batch : {1, 2}) {
          Job job = tiny_job();
          job.plan.tensor = tensor, job.plan.pipeline = pipeline, job.plan.data = data,
          job.plan.micro_batch = micro_batch;
          job.plan.sequence_parallel = tensor > 1;
          EXPECT_EQ(step_flops(job), kStep) << tensor << " " << pipeline << " " << data << " " << micro_batch;
        }
      }
    }
  }
}

TEST(LoweredFlops, OfGroupedQueriesAndGatedMlpsAreTheModelsOwn) {
  Job job = tiny_job();
  job.model = tiny_llama();
  job.plan.tensor = 2, job.plan.pipeline = 2;
  EXPECT_EQ(step_flops(job), models::flops_per_token(job.model, 16).model * 128);
}

TEST(LoweredFlops, WithFullRecomputationAddOneForwardOfTheLayers) {
  // 24 l h^2 = 98,304 and 4 l s h = 8,192 more per token: (331,776 + 106,496) x 128
  Job job = tiny_job();
  job.plan.recompute = Recompute::kFull;
  EXPECT_EQ(step_flops(job), 56098816);
  EXPECT_EQ(models::flops_per_token(job.model, 16).hardware_full * 128, 56098816);
  job.plan.tensor = 2, job.plan.pipeline = 4;
  EXPECT_EQ(step_flops(job), 56098816);
}

TEST(LoweredFlops, WithSelectiveRecomputationAddOneForwardOfTheCore) {
  // 4 l s h = 8,192 more per token. The published form counts three times that: models/model.h says why.
  Job job = tiny_job();
  job.plan.recompute = Recompute::kSelective;
  EXPECT_EQ(step_flops(job), 43515904);                                                  // (331,776 + 8,192) x 128
  EXPECT_EQ(models::flops_per_token(job.model, 16).hardware_selective * 128, 45613056);  // (331,776 + 24,576) x 128
}

TEST(LoweredFlops, OfFlashAttentionCountTheCausalHalfAndItsScoresAgain) {
  // Core forward 4 l s h / 2 = 4,096, backward 2.5 times that: 14,336 for 24,576 per token: 321,536 x 128
  Job job = tiny_job();
  job.plan.attention = Attention::kFlash;
  EXPECT_EQ(step_flops(job), 41156608);
}

TEST(LoweredFlops, CountTheRowsThatPadTheVocabulary) {
  // V = 61 over 4 ranks is 64: the padding is computed, and MFU must not count it. 6 x 32 x 3 x 128 = 73,728 less
  // there.
  Job job = tiny_job();
  job.model.vocab = 61;
  job.plan.tensor = 4;
  EXPECT_EQ(step_flops(job), kStep);
  EXPECT_EQ(models::flops_per_token(job.model, 16).model * 128, kStep - 73728);
}

// Key heads that several tensor ranks hold are computed by each of them, and latents and the projections of multi-token
// prediction by all where each has all tokens; MFU must not count it twice: three products, 2 flops a weight.
TEST(LoweredFlops, OfARandomPlanWithoutRecomputationOrFlashAreTheModelsOwn) {
  RandomJobs jobs(17);
  for (int i = 0; i < 100; ++i) {
    Job job = jobs.next();
    job.plan.recompute = Recompute::kNone, job.plan.attention = Attention::kUnfused, job.plan.stack = "trivium";
    job.plan.context_method = ContextMethod::kAllToAll;  // a ring is always flash
    if (job.model.experts || check(job)) continue;       // capacity is padded
    const double tokens = static_cast<double>(job.training.global_batch * job.training.sequence);
    const std::int64_t copies = (key_ranks(job) - 1) * 2 * job.model.kv_heads * job.model.head_dim;
    const models::Latent none, &l = job.model.latent ? *job.model.latent : none;
    const std::int64_t ranks = job.plan.sequence_parallel ? 1 : job.plan.tensor;
    const std::int64_t latents = (ranks - 1) * (l.query_rank + l.key_rank + l.rotary_dim);
    const std::int64_t modules = job.model.mtp_depth(), projections = (ranks - 1) * 2 * job.model.hidden * modules;
    const std::int64_t columns = (copies + latents) * (job.model.layers + modules) + projections;
    const double again = static_cast<double>(6 * job.model.hidden * columns) * tokens;
    EXPECT_EQ(step_flops(job), models::flops_per_token(job.model, job.training.sequence).model * tokens + again);
  }
}

// Of each kind of module a forward of all layers: DeepSeek-V3 has 3 dense MLPs of 18,432 and 58 mixtures, 8 experts of
// 2,048 each, a shared one and a router of 256; heads are made of latents of 1,536 and 512.
TEST(ModuleFlops, AreThoseOfAForwardOfTheModules) {
  const models::ForwardFlops of = models::module_flops(models::load_model("deepseek-v3"), 4096);
  EXPECT_EQ(of.mlp, 3 * 6.0 * 7168 * 18432);
  EXPECT_EQ(of.mixture, 58 * (9 * 6.0 * 7168 * 2048 + 2.0 * 7168 * 256));
  EXPECT_EQ(of.shared, 58 * 6.0 * 7168 * 2048);
  EXPECT_EQ(of.latent_heads, 61 * 2.0 * (1536 * 128 * 192 + 512 * 128 * 256));
  EXPECT_EQ(of.core, 61 * 2.0 * 4096 * 128 * (192 + 128));
}

}  // namespace
}  // namespace trivium::program
