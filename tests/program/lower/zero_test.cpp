#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

// Elements of the tiny model's segments: embedding 16 x 32 + 64 x 32 = 2,560; a layer 4 norms x 32 + biases 32 + 32 +
// 96 + 128
// + weights 3,072 + 1,024 + 4,096 + 4,096 = 12,704; head 2 x 32 = 64.
std::vector<std::int64_t> sizes_of(const ChunkTemplate& kind) {
  std::vector<std::int64_t> sizes;
  for (const Bucket& bucket : kind.buckets) sizes.push_back(bucket.elements);
  return sizes;
}

TEST(Bucket, IsOneSegmentUnlessThePlanSaysOtherwise) {
  EXPECT_THAT(sizes_of(lowered(tiny_job()).kinds[0]), ::testing::ElementsAre(2560, 12704, 12704, 12704, 12704, 64));
}

TEST(Bucket, MergesFromTheEndUntilItIsFull) {
  // 60,000 bytes of fp32: head 256 + layer 3 50,816 is not yet enough, layer 2 makes it 101,888; layers 1 and 0 follow;
  // the embedding is left over.
  Job job = tiny_job();
  job.plan.bucket_bytes = 60'000;
  EXPECT_THAT(sizes_of(lowered(job).kinds[0]), ::testing::ElementsAre(2560, 25408, 25472));
  job.plan.bucket_bytes = 1'000'000'000;
  EXPECT_THAT(sizes_of(lowered(job).kinds[0]), ::testing::ElementsAre(53440));
  job.plan.bucket_bytes = 257;  // the head alone is a byte short
  EXPECT_THAT(sizes_of(lowered(job).kinds[0]), ::testing::ElementsAre(2560, 12704, 12704, 12704, 12768));
}

TEST(Bucket, IsPaddedSoThatEveryRankOwnsAnEqualAlignedShard) {
  // 3 ranks x 16 elements = 48: 2,560 -> 2,592 = 54 x 48, 12,704 -> 12,720 = 265 x 48, 64 -> 96.
  Job job = tiny_job();
  job.training.global_batch = 9;
  job.plan.data = 3, job.plan.zero_stage = 1;
  const Program program = lowered(job);
  EXPECT_THAT(sizes_of(program.kinds[0]), ::testing::ElementsAre(2592, 12720, 12720, 12720, 12720, 96));
  EXPECT_EQ(program.kinds[0].buckets[0].shard, 864);
  EXPECT_EQ(program.kinds[0].buckets[1].shard, 4240);
  EXPECT_EQ(program.kinds[0].buckets[5].shard, 32);
  // Two fp32 moments of the shards: 8 x (864 + 4 x 4240 + 32)
  EXPECT_EQ(program.roles[0].bytes[static_cast<std::size_t>(Space::kOptimizer)], 142848);
}

// Of every element 4 bytes of moments, and with 16-bit parameters 4 of its copy; fp16 gradients of a stack that keeps
// them have another 4.
TEST(Bucket, HasStateOfNarrowMoments) {
  Job job = tiny_job();
  job.training.global_batch = 9;
  job.plan.data = 3, job.plan.zero_stage = 1;
  const auto bytes_of = [&](DType precision, Moments moments, const char* stack) {  // of an element
    job.plan.precision = precision, job.plan.moment_dtype = moments, job.plan.stack = stack;
    const Program program = lowered(job);
    std::int64_t elements = 0;
    for (const Bucket& bucket : program.kinds[0].buckets) elements += bucket.shard;
    const std::int64_t bytes = program.roles[0].bytes[static_cast<std::size_t>(Space::kOptimizer)];
    EXPECT_EQ(bytes % elements, 0);
    return bytes / elements;
  };
  EXPECT_EQ(bytes_of(DType::kFp32, Moments::kBf16, "trivium"), 4);
  EXPECT_EQ(bytes_of(DType::kFp64, Moments::kBf16, "trivium"), 4);
  EXPECT_EQ(bytes_of(DType::kFp64, Moments::kFp32, "trivium"), 16);
  EXPECT_EQ(bytes_of(DType::kBf16, Moments::kBf16, "trivium"), 8);
  EXPECT_EQ(bytes_of(DType::kBf16, Moments::kFp32, "trivium"), 12);
  EXPECT_EQ(bytes_of(DType::kFp16, Moments::kBf16, "megatron"), 12);
}

TEST(Bucket, TilesTheParametersAndItsShardsTileIt) {
  RandomJobs jobs(23);
  for (int i = 0; i < 200; ++i) {
    const Program program = lowered(jobs.next());
    const Plan& plan = program.job.plan;
    for (const ChunkTemplate& kind : program.kinds) {
      std::int64_t end = 0, state = 0;
      int segment = 0;
      for (const Bucket& bucket : kind.buckets) {
        ASSERT_EQ(bucket.begin, end);
        if (!bucket.expert) {  // experts that are spread come after all segments
          ASSERT_EQ(bucket.first_segment, segment);
          segment = bucket.last_segment + 1;
        }
        const int shard_group = plan.shard_group > 0 ? plan.shard_group : plan.data;
        const int group = bucket.expert ? plan.data / expert_replicas(plan) : shard_group;
        ASSERT_EQ(bucket.shard * (plan.zero_stage > 0 ? group * plan.context : 1), bucket.elements);
        ASSERT_EQ(bucket.shard % 16, 0);
        ASSERT_EQ(bucket.optimizer_offset, state);
        end += bucket.elements;
        const bool half = is_half(plan.precision);
        const int numbers = !half ? 2 : program.stack.keeps_half_gradients(program.job.plan.precision) ? 4 : 3;
        state += bucket.shard * numbers * (half ? 4 : size_of(plan.precision));
      }
      ASSERT_EQ(segment, kind.layers + (kind.embedding ? 1 : 0) + kind.parts_at_end());
      ASSERT_EQ(kind.bytes[static_cast<std::size_t>(Space::kOptimizer)], state);
      for (const Parameter& p : kind.parameters) {
        int holders = 0;
        for (const Bucket& bucket : kind.buckets) {
          holders +=
              p.offset >= bucket.begin && p.offset + p.local_rows * p.local_columns <= bucket.begin + bucket.elements;
        }
        ASSERT_EQ(holders, 1) << p.name;
      }
    }
  }
}

/// Kinds of the data group's collectives of one step, and their bytes.
std::vector<std::pair<OpKind, double>> data_collectives(const Job& job) {
  std::vector<std::pair<OpKind, double>> found;
  for_each_op(lowered(job), [&](const Role&, const Task&, const Op& op) {
    if (op.group == Group::kData) found.emplace_back(op.kind, op.bytes);
  });
  return found;
}

Job one_bucket() {
  Job job = tiny_job();
  job.plan.data = 2;
  job.plan.bucket_bytes = 1'000'000'000;
  return job;
}

TEST(GradientReduction, IsAnAllReduceWithoutZero) {
  // 53,440 numbers of 4 bytes; 2 in 16-bit where the plan reduces in 16 bits.
  using List = std::vector<std::pair<OpKind, double>>;
  Job job = one_bucket();
  EXPECT_EQ(data_collectives(job), (List{{OpKind::kAllReduce, 213760}}));
  job.plan.precision = DType::kBf16;
  EXPECT_EQ(data_collectives(job), (List{{OpKind::kAllReduce, 213760}}));
  job.plan.reduce_dtype = DType::kBf16;
  EXPECT_EQ(data_collectives(job), (List{{OpKind::kAllReduce, 106880}}));
}

TEST(GradientReduction, IsAReduceScatterAndAGatherOfParametersWithZero) {
  // 53,440 = 32 x 1,670: no padding. Gradients in fp32, parameters in bf16.
  Job job = one_bucket();
  job.plan.zero_stage = 1;
  job.plan.precision = DType::kBf16;
  using List = std::vector<std::pair<OpKind, double>>;
  EXPECT_EQ(data_collectives(job), (List{{OpKind::kReduceScatter, 213760}, {OpKind::kAllGather, 106880}}));
}

TEST(GradientReduction, WithOneReplicaIsNone) {
  Job job = one_bucket();
  job.plan.data = 1, job.plan.zero_stage = 1;
  EXPECT_TRUE(data_collectives(job).empty());
}

// Regression: the reduction named the bucket, the sum of the two uses named the embedding's gradient, and nothing
// ordered them.
TEST(GradientReduction, WaitsForTheSumOfTheTwoUsesOfATiedWeight) {
  const Program program = lowered(one_bucket());
  const auto& ops = program.bodies[static_cast<std::size_t>(program.kinds[0].reduce[0])].ops;
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(ops[0].kind, OpKind::kAdd);
  EXPECT_EQ(ops[1].kind, OpKind::kAllReduce);
  EXPECT_EQ(ops[1].after[0], 0);
}

TEST(GradientNorm, IsSharedByTheModelAndWithZeroByTheWorld) {
  Job job = one_bucket();
  job.plan.pipeline = 2;
  const auto group_of_norm = [&] {
    const Program program = lowered(job);
    return program.bodies[static_cast<std::size_t>(program.kinds[0].norm_reduce)].ops.front().group;
  };
  EXPECT_EQ(group_of_norm(), Group::kModel);
  job.plan.zero_stage = 1;
  EXPECT_EQ(group_of_norm(), Group::kWorld);
}

TEST(OptimizerWork, CoversEveryShardOnce) {
  Job job = tiny_job();
  job.plan.data = 2, job.plan.zero_stage = 1, job.plan.pipeline = 2;
  std::int64_t stepped = 0, squared = 0, owned = 0;
  const Program program = lowered(job);
  for_each_op(program, [&](const Role&, const Task&, const Op& op) {
    if (op.kind == OpKind::kAdamW) stepped += op.elements;
    if (op.kind == OpKind::kGradientNorm) squared += op.elements;
  });
  for (const ChunkTemplate& kind : program.kinds) {
    for (const Bucket& bucket : kind.buckets) owned += bucket.shard;
  }
  EXPECT_EQ(stepped, owned);
  EXPECT_EQ(squared, owned);
}

}  // namespace
}  // namespace trivium::program
