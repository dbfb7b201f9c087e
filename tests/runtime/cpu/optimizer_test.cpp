// The optimizer's kernels over a bucket: what is counted in the norm, AdamW by hand, and shards that agree to the bit.

#include "tests/runtime/cpu/kernel_call.h"

namespace trivium::runtime::cpu {
namespace {

using program::Space;
using program::Split;

/// A chunk of three parameters in one bucket of 24 elements: a matrix of 10 (split, decayed), a vector of 5
/// (replicated), a copy of 6 (tied), then 3 of padding. Gradients, parameters and moments of type T.
template <class T>
struct Chunk {
  explicit Chunk(std::int64_t shard) {
    kind.parameters.resize(3);
    const std::int64_t sizes[] = {10, 5, 6};
    for (std::size_t i = 0, offset = 0; i < 3; offset += static_cast<std::size_t>(sizes[i++])) {
      kind.parameters[i].local_rows = 1;
      kind.parameters[i].local_columns = sizes[i];
      kind.parameters[i].offset = static_cast<std::int64_t>(offset);
    }
    kind.parameters[0].split = Split::kColumns;
    kind.parameters[0].decayed = true;
    kind.parameters[2].split = Split::kRows;
    kind.parameters[2].tied_copy = true;
    kind.buckets.push_back({.begin = 0, .elements = 24, .shard = shard});
    parameters = converted<T>(numbers(24, 1));
    gradients = converted<T>(numbers(24, 2));
    moments.assign(static_cast<std::size_t>(2 * shard), T(0));
  }
  void run(OpKind what, std::vector<double>& norm, int shard_rank = 0, int tensor_rank = 0) {
    Call call(what, 0, 0);
    call.op.bucket = 0;
    call.op.elements = 24;
    call.arguments.kind = &kind;
    call.arguments.shard_rank = shard_rank;
    call.arguments.tensor_rank = tensor_rank;
    call.arguments.optimizer = &optimizer;
    call.values.step = step;
    call.values.learning_rate = 0.01;
    const auto base = [&](Space space, std::vector<T>& memory) {
      call.arguments.chunk_base[static_cast<std::size_t>(space)] = reinterpret_cast<std::byte*>(memory.data());
    };
    base(Space::kParameter, parameters);
    base(Space::kGradient, gradients);
    base(Space::kOptimizer, moments);
    if (what == OpKind::kGradientNorm) call.out(0, norm);
    if (what == OpKind::kAdamW) call.in(0, norm);
    call.run<T>();
  }

  program::ChunkTemplate kind;
  program::Optimizer optimizer;
  std::int64_t step = 0;
  std::vector<T> parameters, gradients, moments;
};

TEST(ZeroGradients, ClearsTheWholeBucketAndNothingElse) {
  Chunk<float> chunk(12);
  chunk.kind.buckets[0].begin = 4;
  chunk.kind.buckets[0].elements = 18;
  const std::vector<float> before = chunk.gradients;
  std::vector<double> none(2);
  chunk.run(OpKind::kZeroGradients, none, 1);
  for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(chunk.gradients[i], i < 4 || i >= 22 ? before[i] : 0.0F) << i;
}

// Rank 0 of the tensor group counts the matrix (4 * 10) and the vector (9 * 5); rank 1 its own part of the matrix
// alone. The tied copy and the padding never count. 1 + 2^-60 was there before.
TEST(GradientNorm, CountsEveryElementOfTheModelOnce) {
  Chunk<double> chunk(24);
  chunk.gradients.assign(24, 2);
  for (std::size_t i = 10; i < 15; ++i) chunk.gradients[i] = 3;
  std::vector<double> norm{1, 0x1p-60};
  chunk.run(OpKind::kGradientNorm, norm);
  EXPECT_EQ(norm, (std::vector<double>{86, 0x1p-60}));
  std::vector<double> second(2);
  chunk.run(OpKind::kGradientNorm, second, 0, 1);
  EXPECT_EQ(second, (std::vector<double>{40, 0}));
}

// A shard equal to the bucket means all of it, whatever the data rank.
TEST(GradientNorm, OfAnUnshardedBucketIgnoresTheDataRank) {
  Chunk<double> chunk(24);
  std::vector<double> first(2), third(2);
  chunk.run(OpKind::kGradientNorm, first, 0);
  chunk.run(OpKind::kGradientNorm, third, 3);
  EXPECT_EQ(first, third);
}

template <class T>
class Sharding : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Sharding, Types);

TYPED_TEST(Sharding, LeavesTheRoundedNormAndEveryParameterBitwiseEqual) {
  Chunk<TypeParam> whole(24);
  std::vector<double> norm(2);
  whole.run(OpKind::kGradientNorm, norm);
  whole.run(OpKind::kAdamW, norm);
  for (const int ranks : {2, 3, 4, 8}) {
    const std::int64_t shard = 24 / ranks;
    std::vector<double> split_norm(2);
    std::vector<TypeParam> parameters;
    std::vector<Chunk<TypeParam>> chunks(static_cast<std::size_t>(ranks), Chunk<TypeParam>(shard));
    for (int rank = 0; rank < ranks; ++rank) {
      chunks[static_cast<std::size_t>(rank)].run(OpKind::kGradientNorm, split_norm, rank);  // adds to what is there
    }
    EXPECT_EQ(split_norm[0] + split_norm[1], norm[0] + norm[1]);
    for (int rank = 0; rank < ranks; ++rank) {
      Chunk<TypeParam>& chunk = chunks[static_cast<std::size_t>(rank)];
      chunk.run(OpKind::kAdamW, split_norm, rank);
      parameters.insert(parameters.end(), chunk.parameters.begin() + rank * shard,
                        chunk.parameters.begin() + (rank + 1) * shard);
    }
    EXPECT_EQ(parameters, whole.parameters) << ranks << " shards";
  }
}

// Norm 5 (its square 25) and clip 1: g' = g / (5 + 1e-6). In the first step m / (1 - b1) = g', v / (1 - b2) = g'^2, so
// the direction is g' / (|g'| + eps); the second step repeats it by hand from the recurrences.
TEST(AdamW, FollowsItsRecurrencesWithClippingAndDecayOfMatricesOnly) {
  Chunk<double> chunk(24);
  const std::vector<double> start = chunk.parameters;
  std::vector<double> norm{25, 0};
  chunk.run(OpKind::kAdamW, norm);
  chunk.step = 1;
  chunk.run(OpKind::kAdamW, norm);
  std::vector<double> want = start;
  for (std::size_t i = 0; i < 21; ++i) {
    const double g = chunk.gradients[i] / (5 + 1e-6), decay = i < 10 ? 0.1 : 0.0;
    double m = 0, v = 0;
    for (int t = 1; t <= 2; ++t) {
      m = 0.9 * m + 0.1 * g;
      v = 0.95 * v + 0.05 * g * g;
      const double m_hat = m / (1 - std::pow(0.9, t)), v_hat = v / (1 - std::pow(0.95, t));
      want[i] -= 0.01 * (m_hat / (std::sqrt(v_hat) + 1e-8) + decay * want[i]);
    }
  }
  expect_near(chunk.parameters, want, kRounding);  // the padding at the end has not moved
}

TEST(AdamW, DoesNotClipBelowTheLimitOrWithoutOne) {
  Chunk<double> small(24), unlimited(24), reference(24);
  std::vector<double> below{0.25, 0}, above{25, 0};
  small.run(OpKind::kAdamW, below);
  unlimited.optimizer.clip_norm = 0;
  unlimited.run(OpKind::kAdamW, above);
  EXPECT_EQ(small.moments, unlimited.moments);
  reference.run(OpKind::kAdamW, above);
  EXPECT_NE(reference.moments, unlimited.moments);
}

// A bucket in the middle of the chunk: its part and its moments start at offsets of their own.
TEST(AdamW, UpdatesOnlyThisRanksPartOfItsBucket) {
  Chunk<float> chunk(4);
  chunk.kind.buckets[0] = {.begin = 8, .elements = 8, .shard = 4, .optimizer_offset = 8};
  chunk.moments.assign(10, 0.0F);
  const std::vector<float> start = chunk.parameters;
  std::vector<double> norm{1, 0};
  chunk.run(OpKind::kAdamW, norm, 1);  // elements 12 to 15
  for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(chunk.parameters[i] != start[i], i >= 12 && i < 16) << i;
  EXPECT_EQ(chunk.moments[0], 0.0F);
  EXPECT_EQ(chunk.moments[1], 0.0F);
  EXPECT_NE(chunk.moments[2], 0.0F);
  EXPECT_NE(chunk.moments[9], 0.0F);
}

}  // namespace
}  // namespace trivium::runtime::cpu
