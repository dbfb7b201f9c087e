// What adapters beside frozen weights make of a Program: memory, work, collectives, and what is refused.
#include "program/lower/adapters.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

constexpr std::int64_t kRank = 2;

Job adapted_job() {
  Job job = tiny_job();
  job.training.lora.rank = kRank;
  return job;
}

Job adapting_attention() {
  Job job = adapted_job();
  job.training.lora.fc1 = job.training.lora.fc2 = false;
  return job;
}

/// Four experts of width 96, two for a token, with room for exactly the even share; beside them an MLP of 64.
Job adapted_mixture() {
  Job job = adapted_job();
  job.model = tiny_llama();
  job.model.experts = models::Experts{.count = 4, .top_k = 2, .capacity_factor = 1, .shared_hidden = 64};
  return job;
}

Job adapted_latent() {
  Job job = adapted_mixture();
  job.model.kv_heads = 4;
  job.model.latent = models::Latent{20, 12, 6, 4, 8};
  job.model.head_dim = 10;
  return job;
}

std::int64_t bytes_in(const Job& job, Space space) {
  return lowered(job).roles[0].bytes[static_cast<std::size_t>(space)];
}

std::int64_t count_of(const Job& job, const std::function<bool(const Task&, const Op&)>& wanted) {
  std::int64_t count = 0;
  for_each_op(lowered(job), [&](const Role&, const Task& task, const Op& op) { count += wanted(task, op) ? 1 : 0; });
  return count;
}

TEST(AdapterMemory, HasGradientsAndMomentsOfAdaptersAlone) {
  // A layer's adapters of rank 2: qkv 2 (32 + 96), projection 2 (32 + 32), fc1 and fc2 2 (32 + 128) each: 1,024
  // numbers. The model has 53,440 (RankMemory).
  Job job = adapted_job();
  const std::int64_t adapters = 4 * 1024, all = 53440 + adapters;
  EXPECT_EQ(bytes_in(job, Space::kParameter), 4 * all);
  EXPECT_EQ(bytes_in(job, Space::kGradient), 4 * adapters);
  EXPECT_EQ(bytes_in(job, Space::kOptimizer), 8 * adapters);
  job.plan.precision = DType::kBf16;
  EXPECT_EQ(bytes_in(job, Space::kParameter), 2 * all);
  EXPECT_EQ(bytes_in(job, Space::kGradient), 4 * adapters);
  EXPECT_EQ(bytes_in(job, Space::kOptimizer), 12 * adapters);
}

// Of rank 2, a layer of the mixture: qkv 2 (32 + 64) and projection 2 (32 + 32) numbers, each of four experts
// 2 (32 + 192) and 2 (96 + 32), the MLP beside them 2 (32 + 128) and 2 (64 + 32).
constexpr std::int64_t kOfAttention = 192 + 128, kOfExpert = 448 + 256, kOfShared = 320 + 192;

TEST(AdapterMemory, OfExpertsHasThoseOfTheExpertsThatARankHolds) {
  Job job = adapted_mixture();
  EXPECT_EQ(bytes_in(job, Space::kGradient), 4 * 4 * (kOfAttention + 4 * kOfExpert + kOfShared));
  EXPECT_EQ(bytes_in(job, Space::kOptimizer), 2 * bytes_in(job, Space::kGradient));
  job.plan.data = 4, job.plan.expert = 2;
  EXPECT_EQ(bytes_in(job, Space::kGradient), 4 * 4 * (kOfAttention + 2 * kOfExpert + kOfShared));
  // Two ranks of four hold the same experts, and share the state of their adapters; all four that of the others.
  job.plan.zero_stage = 1;
  EXPECT_EQ(bytes_in(job, Space::kOptimizer), 8 * 4 * ((kOfAttention + kOfShared) / 4 + 2 * kOfExpert / 2));
}

TEST(AdapterMemory, FrozenExpertsAreShardedWithZero3Alone) {
  Job job = adapted_mixture();
  job.plan.data = 4, job.plan.expert = 2;
  const std::int64_t experts = 4 * 4 * 2 * 3 * 32 * 96;  // bytes of two experts' matrices, of four layers
  const std::int64_t whole = bytes_in(job, Space::kParameter);
  job.plan.zero_stage = 1;
  EXPECT_EQ(bytes_in(job, Space::kParameter), whole);
  job.plan.zero_stage = 3;
  Job without = job;
  without.plan.expert = 4;  // no other rank holds them
  EXPECT_LT(bytes_in(job, Space::kParameter), whole / 2);
  EXPECT_EQ(bytes_in(without, Space::kParameter), bytes_in(job, Space::kParameter));
  EXPECT_GT(bytes_in(job, Space::kGathered) - bytes_in(without, Space::kGathered), experts / 4);
}

TEST(AdapterMemory, ShardsFrozenParametersWithZero3) {
  Job job = adapted_job();
  job.plan.data = 4;
  job.plan.zero_stage = 1;
  EXPECT_EQ(bytes_in(job, Space::kParameter), 4 * (53440 + 4096));
  EXPECT_EQ(bytes_in(job, Space::kOptimizer), 8 * 4096 / 4);
  job.plan.zero_stage = 3;
  // Buckets of 4 x 16 numbers: embeddings 2,560, layers 12,704 -> 12,736, the final norm 64.
  EXPECT_EQ(bytes_in(job, Space::kParameter), 4 * (2560 + 4 * 12736 + 64 + 4096) / 4);
}

TEST(AdapterMemory, KeepsNoInputsThatNoAdapterReads) {
  // 16 tokens, fp32: the MLP's norm 16 x 32, its activations 16 x 128, and what its two adapters make of them, 16 x 2.
  const std::int64_t layer = 4 * 16 * (32 + 128 + 2 * kRank);
  EXPECT_EQ(bytes_in(adapted_job(), Space::kFrame) - bytes_in(adapting_attention(), Space::kFrame), 4 * layer);
}

TEST(AdapterWork, IsThatOfTheModelLessGradientsOfFrozenMatrices) {
  const auto flops = [](const Job& job) {
    double sum = 0;
    for_each_op(lowered(job), [&](const Role&, const Task&, const Op& op) { sum += op.flops; });
    return sum;
  };
  for (Job job : {adapted_job(), adapting_attention(), adapted_mixture(), adapted_latent()}) {
    EXPECT_DOUBLE_EQ(flops(job), flops_per_token(job).model * 128);
    job.plan.recompute = Recompute::kFull;
    EXPECT_DOUBLE_EQ(flops(job), flops_per_token(job).hardware_full * 128);
  }
  // By hand, per token: 48 l h^2 = 196,608, 12 l s h = 24,576, 4 h V = 8,192, and 6 for each number of an adapter.
  EXPECT_EQ(flops_per_token(adapted_job()).model, 196608 + 24576 + 8192 + 6 * 4096);
}

TEST(AdapterWork, HasGradientsOfTwoFactorsForEachTarget) {
  const auto gradients = [](const Job& job) {
    return count_of(job, [](const Task&, const Op& op) { return op.kind == OpKind::kMatmulWgrad; });
  };
  EXPECT_EQ(gradients(adapted_job()), 8 * 4 * 8);  // 8 micro-batches, 4 layers, 4 targets
  EXPECT_EQ(gradients(adapting_attention()), 8 * 4 * 4);
}

// A token meets the adapters of two experts, of the MLP beside them and of attention.
TEST(AdapterWork, OfExpertsIsThatOfTheExpertsATokenVisits) {
  Job none = adapted_mixture(), attention = adapted_mixture();
  attention.training.lora.fc1 = attention.training.lora.fc2 = false;
  EXPECT_EQ(flops_per_token(none).model - flops_per_token(attention).model, 6 * 4 * (2 * kOfExpert + kOfShared));
  const auto grouped = [](const Job& job, OpKind kind) {
    return count_of(job, [&](const Task&, const Op& op) { return op.kind == kind; });
  };
  EXPECT_EQ(grouped(none, OpKind::kExpertMatmul), 8 * 4 * (2 + 4));  // 8 micro-batches, 4 layers
  EXPECT_EQ(grouped(none, OpKind::kExpertMatmulWgrad), 8 * 4 * 4);
  EXPECT_EQ(grouped(attention, OpKind::kExpertMatmul), 8 * 4 * 2);
  EXPECT_EQ(grouped(attention, OpKind::kExpertMatmulWgrad), 0);
}

// Experts' adapters are reduced among the ranks that hold the same experts, the frozen experts not at all.
TEST(AdapterCollectives, OfSpreadExpertsReduceTheirAdaptersAlone) {
  Job job = adapted_mixture();
  job.plan.data = 4, job.plan.expert = 2;
  std::int64_t reduced = 0;
  for_each_op(lowered(job), [&](const Role&, const Task&, const Op& op) {
    if (op.kind == OpKind::kAllReduce && op.group == Group::kExpertData) reduced += op.elements;
  });
  EXPECT_EQ(reduced, 4 * 2 * kOfExpert);
  Program program = lowered(job);
  for (const ChunkTemplate& kind : program.kinds) {
    bool frozen = false;  // they come last
    for (const Bucket& bucket : kind.buckets) {
      EXPECT_TRUE(bucket.frozen || !frozen);
      frozen = bucket.frozen;
    }
  }
}

TEST(AdapterCollectives, AreThoseOfThePassesWithoutInputsThatNobodyReads) {
  Job whole = tiny_job();
  whole.plan.tensor = 2;
  whole.plan.sequence_parallel = true;
  Job adapted = adapted_job(), attention = adapting_attention();
  adapted.plan = attention.plan = whole.plan;
  const auto collectives = [](const Job& job, TaskKind pass) {
    return count_of(job, [&](const Task& task, const Op& op) {
      return task.kind == pass && is_communication(op.kind) && op.group == Group::kTensor;
    });
  };
  EXPECT_EQ(collectives(adapted, TaskKind::kForward), collectives(whole, TaskKind::kForward));
  // The head's input and the embedding's gradient are not gathered, nor is, with attention's adapters alone, the MLP's
  // input: for each of 8 micro-batches.
  EXPECT_EQ(collectives(adapted, TaskKind::kBackward), collectives(whole, TaskKind::kBackward) - 8 * 2);
  EXPECT_EQ(collectives(attention, TaskKind::kBackward), collectives(adapted, TaskKind::kBackward) - 8 * 4);
}

TEST(AdapterCheck, RefusesByNameWhatAdaptersDoNotGoWith) {
  const std::vector<std::pair<const char*, std::function<void(Job&)>>> cases{
      {"multi-token", [](Job& j) { j.model.mtp = models::MultiToken{}; }},
      {"zero_bubble", [](Job& j) { j.plan.pipeline = 2, j.plan.schedule = Schedule::kZeroBubble; }},
      {"offload", [](Job& j) { j.plan.offload.optimizer = Storage::kHost; }},
      {"compression", [](Job& j) { j.plan.compression = Compression::kFp16; }},
      {"stage_layers", [](Job& j) {
         j.plan.pipeline = 2, j.plan.stage_layers = {4, 0};
       }}};
  for (const auto& [word, change] : cases) {
    Job job = adapted_job();
    change(job);
    const auto verdict = check(job);
    ASSERT_TRUE(verdict) << word;
    EXPECT_EQ(verdict->rule, "lora-supported");
    EXPECT_NE(verdict->reason.find(word), std::string::npos) << verdict->reason;
  }
  Job targets_alone = tiny_job();
  targets_alone.training.lora.qkv = false;
  EXPECT_EQ(check(targets_alone)->rule, "lora-needs-rank");
}

}  // namespace
}  // namespace trivium::program
