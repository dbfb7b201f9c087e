// The optimizer's kernels, run on the host as they are written, against the CPU backend.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>

#include "runtime/cpu/kernels.h"
#include "runtime/cuda/operations.h"
#include "tests/runtime/cuda/emulated_call.h"
#include "tests/runtime/cuda/host_threads.h"

namespace trivium::runtime::cuda {
namespace {

using program::DType;
using program::OpKind;
using program::Space;
using program::Split;

/// 40 parameters of 30 elements, 32 apart, every third one replicated, decayed where even; one is a tied copy, and two
/// tensor ranks share the last two columns of some. More of them than one launch takes.
struct Chunk {
  static constexpr std::int64_t kElements = 40 * 32;
  program::ChunkTemplate kind;
  program::Optimizer optimizer;
  std::vector<float> gradients, state;

  Chunk(std::int64_t shard, std::int64_t copies, int parts = 1) {
    for (int i = 0; i < 40; ++i) {
      program::Parameter p;
      p.local_rows = 5, p.local_columns = 6, p.offset = i * 32;
      p.split = i % 3 == 0 ? Split::kReplicated : Split::kColumns;
      p.decayed = i % 2 == 0;
      p.tied_copy = i == 7;
      if (i % 6 == 4) p.key_ranks = 2, p.key_columns = 2;
      kind.parameters.push_back(p);
    }
    kind.buckets.push_back({.begin = 0, .elements = kElements, .shard = shard, .optimizer_offset = 16, .parts = parts});
    for (const double x : uniform(kElements, 1)) gradients.push_back(static_cast<float>(x));
    state.assign(static_cast<std::size_t>(4 + copies * shard), 0.0F);
    for (std::size_t i = 0; i < state.size(); ++i) state[i] = static_cast<float>(i % 13) / 13;
  }
  KernelArguments arguments(program::Op& op, int shard_rank, int tensor_rank, StepValues& values, void* parameters) {
    op.bucket = 0;
    KernelArguments a;
    a.op = &op;
    a.kind = &kind;
    a.optimizer = &optimizer;
    a.values = &values;
    a.shard_rank = shard_rank, a.tensor_rank = tensor_rank;
    a.chunk_base[static_cast<std::size_t>(Space::kGradient)] = reinterpret_cast<std::byte*>(gradients.data());
    a.chunk_base[static_cast<std::size_t>(Space::kOptimizer)] = reinterpret_cast<std::byte*>(state.data());
    a.chunk_base[static_cast<std::size_t>(Space::kParameter)] = static_cast<std::byte*>(parameters);
    return a;
  }
};

TEST(GradientNormEmulation, CountsWhatTheCpuCounts) {
  for (const auto& [shard, parts] :
       {std::pair{Chunk::kElements, 1}, {Chunk::kElements / 2, 1}, {Chunk::kElements / 2, 4}}) {
    for (const int tensor_rank : {0, 1}) {
      Chunk chunk(shard, 2, parts);
      program::Op op;
      op.kind = OpKind::kGradientNorm;
      StepValues values;
      const int shard_rank = shard < Chunk::kElements ? 1 : 0;
      std::array<double, 2> wanted{1, 0x1p-60}, got = wanted;
      KernelArguments a = chunk.arguments(op, shard_rank, tensor_rank, values, nullptr);
      a.out[0] = reinterpret_cast<std::byte*>(wanted.data());
      cpu::find_kernel(op.kind, DType::kFp32)(a);
      a.out[0] = reinterpret_cast<std::byte*>(got.data());
      HostLauncher launcher;
      gradient_norm(launcher, a);
      EXPECT_EQ(got[0], wanted[0]);  // sums of doubles carried as pairs do not depend on their order
      EXPECT_NEAR(got[1], wanted[1], 0x1p-90);
    }
  }
}

// Ranges that begin at every place of 16 bytes, of fewer elements than a pack and of more than a block takes at once.
TEST(GradientNormEmulation, TakesPacksFromAnyElementOn) {
  const std::vector<std::int64_t> lengths{3, 9001, 1, 2, 8, 5002, 7, 4099};
  for (std::int64_t first = 0; first < 4; ++first) {
    program::ChunkTemplate kind;
    std::int64_t elements = first;
    for (const std::int64_t length : lengths) {
      program::Parameter p;
      p.local_rows = 1, p.local_columns = length, p.offset = elements;
      kind.parameters.push_back(p);
      elements += length + 2;  // what lies between belongs to nobody
    }
    kind.buckets.push_back({.begin = 0, .elements = elements, .shard = elements});
    alignas(16) static std::array<float, 40000> gradients;
    const auto values = uniform(elements, static_cast<unsigned>(first));
    std::transform(values.begin(), values.end(), gradients.begin(), [](double x) { return static_cast<float>(x); });
    program::Op op;
    op.kind = OpKind::kGradientNorm, op.bucket = 0;
    std::array<double, 2> wanted{0, 0}, got = wanted;
    KernelArguments a;
    a.op = &op, a.kind = &kind;
    a.chunk_base[static_cast<std::size_t>(Space::kGradient)] = reinterpret_cast<std::byte*>(gradients.data());
    a.out[0] = reinterpret_cast<std::byte*>(wanted.data());
    cpu::find_kernel(op.kind, DType::kFp32)(a);
    a.out[0] = reinterpret_cast<std::byte*>(got.data());
    HostLauncher launcher;
    gradient_norm(launcher, a);
    EXPECT_EQ(got[0], wanted[0]) << first;
    EXPECT_NEAR(got[1], wanted[1], 0x1p-80);
    EXPECT_THAT(launcher.launches, ::testing::ElementsAre(::testing::Pair(5, 256), ::testing::Pair(1, 256)));
  }
}

// Four runs of 160 elements: of each quarter of the bucket, 320 elements, the second half.
TEST(AdamWEmulation, StepsEveryRunOfAShard) {
  StepValues values;
  values.learning_rate = 0.01;
  std::array<double, 2> norm{9, 0};
  program::Op op;
  op.kind = OpKind::kAdamW;
  Chunk on_cpu(Chunk::kElements / 2, 2, 4), on_emulation(Chunk::kElements / 2, 2, 4);
  std::vector<float> cpu_parameters(Chunk::kElements, 0.5F), emulated_parameters = cpu_parameters;
  KernelArguments a = on_cpu.arguments(op, 1, 0, values, cpu_parameters.data());
  a.in[0] = reinterpret_cast<std::byte*>(norm.data());
  cpu::find_kernel(op.kind, DType::kFp32)(a);
  HostLauncher launcher;
  a = on_emulation.arguments(op, 1, 0, values, emulated_parameters.data());
  a.in[0] = reinterpret_cast<std::byte*>(norm.data());
  adamw<float>(launcher, a);
  for (std::size_t i = 0; i < static_cast<std::size_t>(Chunk::kElements); ++i) {
    ASSERT_NEAR(emulated_parameters[i], cpu_parameters[i], 1e-6) << i;
    ASSERT_EQ(cpu_parameters[i] != 0.5F, i % 320 >= 160 && i % 32 < 30) << i;
  }
  for (std::size_t i = 0; i < on_cpu.state.size(); ++i) ASSERT_NEAR(on_emulation.state[i], on_cpu.state[i], 1e-6) << i;
}

TEST(AdamWEmulation, StepsAShardAsTheCpuDoes) {
  constexpr std::int64_t kShard = Chunk::kElements / 2;
  StepValues values;
  values.step = 3, values.learning_rate = 0.01;
  std::array<double, 2> norm{9, 0};
  program::Op op;
  op.kind = OpKind::kAdamW;
  Chunk on_cpu(kShard, 2), on_emulation(kShard, 2), in_half(kShard, 3);
  std::vector<float> cpu_parameters(Chunk::kElements, 0.5F), emulated_parameters = cpu_parameters;
  std::vector<Bf16> half_parameters(Chunk::kElements, narrow<Bf16>(0.5F));
  for (std::int64_t i = 0; i < kShard; ++i) in_half.state[static_cast<std::size_t>(4 + 2 * kShard + i)] = 0.5F;
  KernelArguments a = on_cpu.arguments(op, 1, 0, values, cpu_parameters.data());
  a.in[0] = reinterpret_cast<std::byte*>(norm.data());
  cpu::find_kernel(op.kind, DType::kFp32)(a);
  HostLauncher launcher;
  a = on_emulation.arguments(op, 1, 0, values, emulated_parameters.data());
  a.in[0] = reinterpret_cast<std::byte*>(norm.data());
  adamw<float>(launcher, a);
  a = in_half.arguments(op, 1, 0, values, half_parameters.data());
  a.in[0] = reinterpret_cast<std::byte*>(norm.data());
  adamw<Bf16>(launcher, a);
  for (std::size_t i = 0; i < static_cast<std::size_t>(Chunk::kElements); ++i) {
    ASSERT_NEAR(emulated_parameters[i], cpu_parameters[i], 1e-6) << i;
    // The copy is stepped in fp32, the parameter is that copy rounded; padding has no copy that counts.
    const bool is_own = i >= static_cast<std::size_t>(kShard) && i % 32 < 30;
    const float copy = is_own ? in_half.state[4 + static_cast<std::size_t>(kShard) + i] : 0.5F;
    ASSERT_NEAR(copy, emulated_parameters[i], 1e-6) << i;
    ASSERT_EQ(half_parameters[i].bits, narrow<Bf16>(copy).bits) << i;
  }
  for (std::size_t i = 0; i < on_cpu.state.size(); ++i) ASSERT_NEAR(on_emulation.state[i], on_cpu.state[i], 1e-6) << i;
}

// Gradients that carry a scale of 2^k move the parameters as those without it do, bit by bit; a norm that overflowed
// moves nothing. Steps that were left out before do not count.
TEST(AdamWEmulation, TakesTheScaleOffAndLeavesOverflowsOut) {
  constexpr double kScale = 1024;
  StepValues values;
  values.step = 3, values.learning_rate = 0.01;
  program::Op op;
  op.kind = OpKind::kAdamW;
  const auto stepped = [&](double scale, std::array<double, 2> norm, std::int64_t skipped) {
    Chunk chunk(Chunk::kElements, 3);
    for (float& g : chunk.gradients) g *= static_cast<float>(scale);
    std::vector<Fp16> parameters(Chunk::kElements, narrow<Fp16>(0.5F));
    values.loss_scale = scale, values.skipped_steps = skipped;
    KernelArguments a = chunk.arguments(op, 0, 0, values, parameters.data());
    a.in[0] = reinterpret_cast<std::byte*>(norm.data());
    HostLauncher launcher;
    adamw<Fp16>(launcher, a);
    return chunk.state;
  };
  const auto plain = stepped(1, {9, 0}, 0);
  EXPECT_EQ(stepped(kScale, {9 * kScale * kScale, 0}, 0), plain);
  EXPECT_NE(stepped(1, {9, 0}, 2), plain);
  EXPECT_EQ(stepped(kScale, {__builtin_huge_val(), 0}, 0), Chunk(Chunk::kElements, 3).state);
  EXPECT_EQ(stepped(kScale, {__builtin_nan(""), 0}, 0), Chunk(Chunk::kElements, 3).state);
}

TEST(ZeroGradientsEmulation, ClearsTheBucketAlone) {
  Chunk chunk(Chunk::kElements, 2);
  chunk.kind.buckets[0].begin = 32;
  chunk.kind.buckets[0].elements = 64;
  program::Op op;
  op.kind = OpKind::kZeroGradients;
  StepValues values;
  const std::vector<float> before = chunk.gradients;
  HostLauncher launcher;
  zero_gradients(launcher, chunk.arguments(op, 0, 0, values, nullptr));
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(chunk.gradients[i], i < 32 || i >= 96 ? before[i] : 0.0F);
}

}  // namespace
}  // namespace trivium::runtime::cuda
