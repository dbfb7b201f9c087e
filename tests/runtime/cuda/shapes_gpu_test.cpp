// Shapes of real models on a GPU against the CPU backend: many blocks, many tiles, rows longer than a block.
#include <algorithm>
#include <cmath>

#include "program/ir/op.h"
#include "runtime/cuda/loader.h"
#include "runtime/microbench/host_link.h"
#include "tests/runtime/cuda/coded_calls.h"
#include "tests/runtime/cuda/gpu_here.h"

namespace trivium::runtime::cuda {
namespace {

using program::DType;
using program::OpKind;

EmulatedCall attention_call(OpKind kind, std::int64_t samples, int sequence, int heads, int kv_heads, int dim) {
  EmulatedCall call(kind, samples * sequence, static_cast<std::int64_t>(heads) * dim, 0);
  call.op.heads = heads, call.op.kv_heads = kv_heads, call.op.head_dim = dim;
  call.op.sequence = sequence, call.op.flash = true;
  return call;
}

// Tolerances as in attention_emulation_test.cpp.
void expect_attention(DType type, std::int64_t samples, int sequence, int heads, int kv_heads, int dim,
                      bool warpgroups) {
  const double tolerance = type == DType::kBf16 ? 0.02 : 0.02 / 8;
  const std::int64_t tokens = samples * sequence, width = static_cast<std::int64_t>(heads + 2 * kv_heads) * dim;
  const std::int64_t out = tokens * heads * dim;
  EmulatedCall forward = attention_call(OpKind::kAttention, samples, sequence, heads, kv_heads, dim);
  forward.warpgroups = warpgroups;
  forward.with_in(0, Form::kTyped, uniform(tokens * width, 1)).with_out(0, Form::kTyped, uniform(out, 2));
  expect_equal_to_emulation(forward.with_out(1, Form::kWide, uniform(tokens * heads, 3)), type, tolerance);
  const auto results = forward.on_cpu(type);
  EmulatedCall backward = attention_call(OpKind::kAttentionBackward, samples, sequence, heads, kv_heads, dim);
  backward.warpgroups = warpgroups;
  backward.with_in(0, Form::kTyped, uniform(tokens * width, 1)).with_in(1, Form::kTyped, results[0]);
  backward.with_in(2, Form::kWide, results[1]).with_in(3, Form::kTyped, uniform(out, 4));
  expect_equal_to_emulation(backward.with_out(0, Form::kTyped, uniform(tokens * width, 5)), type, tolerance);
}

TEST(GpuHostLink, IsTimedBothWays) {
  const double rate = microbench::time_host_link(gpu(), std::int64_t{64} << 20).rate.value();
  EXPECT_GT(rate, 1e9);  // B/s: PCIe 3 moves 12e9, and nothing between a host and a device 2e12
  EXPECT_LT(rate, 2e12);
}

TEST(GpuShapes, FusedAttention) {
  for (const bool warpgroups : {false, true}) {
    for (const DType type : {DType::kBf16, DType::kFp16}) {
      expect_attention(type, 2, 1000, 6, 2, 64, warpgroups);
      expect_attention(type, 1, 520, 4, 4, 128, warpgroups);
    }
  }
}

/// Of sums in fp32 whatever the operands: as in fp32, where fp16 has an eighth of it.
constexpr double kWideSum = 8 * 3e-6;

TEST(GpuShapes, ProductsOfGpt2) {
  for (const bool transposed : {false, true}) {
    EmulatedCall call(OpKind::kMatmul, 1024, 2304, 768), dgrad(OpKind::kMatmulDgrad, 1024, 2304, 768),
        wgrad(OpKind::kMatmulWgrad, 1024, 2304, 768);
    call.op.weight_transposed = dgrad.op.weight_transposed = wgrad.op.weight_transposed = transposed;
    const auto x = uniform(1024 * 768, 1), w = uniform(2304 * 768, 2), dy = uniform(1024 * 2304, 3);
    call.with_in(0, Form::kTyped, x).with_in(1, Form::kTyped, w).with_in(2, Form::kTyped, uniform(2304, 4));
    expect_equal_to_emulation(call.with_out(0, Form::kTyped, dy));
    expect_equal_to_emulation(
        dgrad.with_in(0, Form::kTyped, dy).with_in(1, Form::kTyped, w).with_out(0, Form::kTyped, x));
    wgrad.with_in(0, Form::kTyped, x).with_in(1, Form::kTyped, dy).with_out(0, Form::kWide, w);
    expect_equal_to_emulation(wgrad.with_out(1, Form::kWide, uniform(2304, 5)), kWideSum);
  }
}

/// y = x w, dx = dy w^T and dw += x^T dy of operands that the CPU cast.
void expect_coded_products(program::Fp8 recipe, std::int64_t m, std::int64_t n, std::int64_t k) {
  SCOPED_TRACE(name_of(recipe));
  using program::Fp8Operand;
  const Cast x = cast_by_cpu_of(recipe, Fp8Operand::kInput, {1, m, k}, 1),
             w = cast_by_cpu_of(recipe, Fp8Operand::kWeight, {1, k, n}, 2),
             dy = cast_by_cpu_of(recipe, Fp8Operand::kGradient, {1, m, n}, 3);
  EmulatedCall forward(OpKind::kMatmul, m, n, k), dgrad(OpKind::kMatmulDgrad, m, n, k),
      wgrad(OpKind::kMatmulWgrad, m, n, k);
  forward.with_in(2, Form::kTyped, uniform(n, 4));
  expect_product_of(recipe, forward.with_out(0, Form::kTyped, uniform(m * n, 5)), x, w);
  expect_product_of(recipe, dgrad.with_out(0, Form::kTyped, uniform(m * k, 6)), dy, w);
  expect_product_of(recipe, wgrad.with_out(0, Form::kWide, uniform(k * n, 7)), x, dy);
}

// Hopper has products of blocks of 128 numbers: no note says that there is none for a shape (Launcher::note).
TEST(GpuShapes, CodedProductsOfGpt2) {
  program::Program program;
  program.settings.precision = DType::kBf16;
  program::Op op;
  op.kind = OpKind::kMatmul, op.fp8 = program::Fp8::kBlock;
  if (const std::string no = gpu().refusal(program, op); !no.empty()) GTEST_SKIP() << no;
  testing::internal::CaptureStderr();
  for (const auto recipe : {program::Fp8::kBlock, program::Fp8::kMxfp8}) expect_coded_products(recipe, 512, 2304, 768);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(GpuShapes, RowsOfGpt2) {
  EmulatedCall norm(OpKind::kNorm, 4096, 1600, 0);
  norm.with_in(0, Form::kTyped, uniform(4096 * 1600, 1)).with_in(1, Form::kTyped, uniform(1600, 2));
  norm.with_in(2, Form::kTyped, uniform(1600, 3)).with_out(0, Form::kTyped, uniform(4096 * 1600, 4));
  expect_equal_to_emulation(norm.with_out(1, Form::kWide, uniform(8192, 5)));
  EmulatedCall sums(OpKind::kLossSums, 64, 50304, 0);
  sums.a.vocabulary = 50257;
  const auto logits = uniform(64 * 50304, 1);
  std::vector<double> highest;  // a row's, which the device finds itself where it has the whole row
  for (auto row = logits.begin(); row != logits.end(); row += 50304) {
    highest.push_back(*std::max_element(row, row + sums.a.vocabulary));
  }
  sums.with_in(0, Form::kWide, logits).with_in(1, Form::kWide, highest);
  expect_equal_to_emulation(
      sums.with_in(2, Form::kInts, indices(64, 2, 50257)).with_out(0, Form::kWide, uniform(128, 3)), kWideSum);
}

// What is sent and what is left make up the gradient again; nothing that is left is larger than anything sent.
TEST(GpuShapes, LargestOfAMillionGradients) {
  constexpr std::int64_t kCount = 1000003, kSent = 10000, kBytes = kCount * 4;
  std::vector<float> gradient;
  for (const double x : uniform(kCount, 1)) gradient.push_back(static_cast<float>(x));
  const Memory given = gpu().allocate(kBytes), left = gpu().allocate(kBytes), wire = gpu().allocate(kSent * 8);
  gpu().upload(program::Lane::kCompute, given.get(), gradient.data(), kBytes);
  program::ChunkTemplate kind;
  kind.parameters.emplace_back().value = 0;
  kind.buffers.push_back({"parameter", program::Space::kParameter, DType::kFp32, 1, 0});
  program::Op op;
  op.elements = kCount, op.k = kSent, op.kind = OpKind::kCompress;
  KernelArguments a;
  a.op = &op, a.kind = &kind;
  a.in[0] = given.get(), a.out[0] = wire.get(), a.out[1] = left.get();
  gpu().run(a, program::Lane::kCompute);
  op.kind = OpKind::kDecompress;
  a.in[0] = wire.get(), a.out[0] = given.get(), a.out[1] = nullptr;
  gpu().run(a, program::Lane::kCompute);
  std::vector<float> sent(kCount), kept(kCount);
  gpu().download(sent.data(), given.get(), kBytes);
  gpu().download(kept.data(), left.get(), kBytes);
  float least = 2, most = 0;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    ASSERT_EQ(sent[i] + kept[i], gradient[i]) << i;
    if (sent[i] != 0) ++count, least = std::min(least, std::abs(sent[i]));
    most = std::max(most, std::abs(kept[i]));
  }
  EXPECT_EQ(count, kSent);
  EXPECT_LE(most, least);
}

// One rank's NCCL: its own values, whether they lie here or there.
TEST(NcclAlone, KeepsWhatOneRankHas) {
  const auto connected = connect_nccl(gpu(), nccl::Launch{});
  if (!connected) GTEST_SKIP() << connected.error().message;
  Communicator& communicator = *connected.value();
  const std::array<int, 1> alone{0};
  const int group = communicator.make_group(alone);
  communicator.barrier(group);
  double loss = 2.5;
  communicator.all_reduce(group, &loss, 1, DType::kFp64, program::Reduction::kSum);
  EXPECT_EQ(loss, 2.5);
  std::array<double, 2> pair{1, 0x1p-60};
  communicator.all_reduce(group, pair.data(), 1, DType::kFp64, program::Reduction::kPairSum);
  EXPECT_EQ(pair, (std::array<double, 2>{1, 0x1p-60}));
  std::int64_t word = 7;
  communicator.broadcast(group, &word, sizeof word, 0);
  EXPECT_EQ(word, 7);
}

}  // namespace
}  // namespace trivium::runtime::cuda
