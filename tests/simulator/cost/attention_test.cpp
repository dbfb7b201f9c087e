#include "simulator/cost/attention.h"

#include <gtest/gtest.h>

#include "program/ir/op_kinds.h"
#include "tests/simulator/cost/example_devices.h"

namespace trivium::simulator {
namespace {

using program::OpKind;

program::Op attention(OpKind kind, int heads, int dim, int sequence, bool flash, int samples = 1) {
  program::Op op;
  op.kind = kind;
  op.dtype = program::DType::kFp16;
  op.heads = op.kv_heads = heads;
  op.head_dim = dim;
  op.sequence = sequence;
  op.flash = flash;
  op.m = static_cast<std::int64_t>(sequence) * samples;
  op.n = static_cast<std::int64_t>(heads) * dim;
  program::fill_work(op);
  return op;
}

// 12 heads of 128 over 2,048 tokens (GPT-3 175B at tensor 8). Sustained .56 · 237.12 = 132.79 TFLOP/s, 1.22951 per
// multiprocessor. QK^T: 8 · 16 tiles of 256x128 and 12 heads = 1,536 blocks = 14.222 waves, rounded 14.946; a block is
// 65536 · (128 + 70) / 1.22951e12 = 10.554 us: 157.7 us. PV: 8 · 1 · 12 = 96 blocks, .9922 waves of
// 65536 · (2048 + 70) / 1.22951e12 = 112.89 us: 112.0 us (64-column tiles and splits are slower). Sum 269.7 us.
TEST(UnfusedAttention, IsTwoBatchedProductsForward) {
  const auto op = attention(OpKind::kAttention, 12, 128, 2048, false);
  EXPECT_NEAR(attention_products(op, a100()).value(), 269.7e-6, 0.5e-6);
}

// dP as QK^T, and dV, dQ, dK as PV: 157.7 + 3 · 112.0 = 493.7 us.
TEST(UnfusedAttention, IsFourBatchedProductsBackward) {
  const auto op = attention(OpKind::kAttentionBackward, 12, 128, 2048, false);
  EXPECT_NEAR(attention_products(op, a100()).value(), 493.7e-6, 1e-6);
}

// BigScience, hidden 13,824 at tensor 4: 96 heads of 144 (24 a GPU) against 128 of 108 (32 a GPU). The products of 108
// cost at least 7 times by FLOPs, and their ratio here lies between that and the 7 · 4/3 of a third more heads.
TEST(UnfusedAttention, FallsOffACliffWhenTheHeadIsNotAMultipleOfEight) {
  const double aligned = attention_products(attention(OpKind::kAttention, 24, 144, 2048, false), a100()).value();
  const double misaligned = attention_products(attention(OpKind::kAttention, 32, 108, 2048, false), a100()).value();
  EXPECT_GT(misaligned / aligned, 6.0);
  EXPECT_LT(misaligned / aligned, 7 * 4.0 / 3.0);
}

TEST(UnfusedAttention, HasNoCliffInFp32) {
  auto even = attention(OpKind::kAttention, 16, 104, 1024, false),
       odd = attention(OpKind::kAttention, 16, 103, 1024, false);
  even.dtype = odd.dtype = program::DType::kFp32;
  EXPECT_LT(attention_products(odd, a100()).value(), attention_products(even, a100()).value());
}

// 16 heads of 128 over 8,192 tokens: causal 2 · 8192² · 2048 = 274.88 GFLOP forward at .53 · 312 · 8192/8432 = 160.65
// TFLOP/s: 1711 us. Backward 2.5 times the FLOPs at .26 · 312 · 8192/8432 = 78.81 TFLOP/s: 8720 us.
TEST(FlashAttention, ComputesTheCausalHalf) {
  EXPECT_NEAR(attention_products(attention(OpKind::kAttention, 16, 128, 8192, true), a100()).value(), 1711e-6, 2e-6);
  EXPECT_NEAR(attention_products(attention(OpKind::kAttentionBackward, 16, 128, 8192, true), a100()).value(), 8720e-6,
              5e-6);
}

// A window of 128 of 8,192 keys: band 128 - 128² / 16,384 = 127 keys, 4 · 8192 · 127 · 2048 = 8.523 GFLOP at
// .53 · 312 · 254 / (254 + 240) = 85.0 TFLOP/s: 100.2 us, as the 127 and 120 keys more of partly masked blocks take.
TEST(FlashAttention, ComputesTheBandOfAWindow) {
  auto op = attention(OpKind::kAttention, 16, 128, 8192, true);
  op.window = 128;
  fill_work(op);
  EXPECT_NEAR(attention_products(op, a100()).value(), 100.2e-6, 0.1e-6);
}

// At 240 tokens half of the rate: s / (s + 240). Samples only multiply.
TEST(FlashAttention, FillsTheDeviceLessWithShortSequences) {
  const auto one = attention(OpKind::kAttention, 16, 64, 240, true);
  EXPECT_NEAR(attention_products(one, a100()).value(), one.flops / (0.53 * 312e12 / 2), 1e-12);
  const auto four = attention(OpKind::kAttention, 16, 64, 240, true, 4);
  EXPECT_NEAR(attention_products(four, a100()).value() / attention_products(one, a100()).value(), 4, 1e-9);
}

// A multiprocessor of an H100 multiplies 989.4 / 132 = 7.495 TFLOP/s, an A100's 312 / 108 = 2.889: with heads of 64 as
// many FLOPs take 1.3 times as long on the former, 1 + .3 · .65 with kernels that reach .65, and as long on the latter.
TEST(FlashAttention, WaitsForSoftmaxInNarrowHeads) {
  const auto wide = attention(OpKind::kAttention, 16, 128, 8192, true);
  const auto narrow = attention(OpKind::kAttention, 32, 64, 8192, true);
  ASSERT_EQ(narrow.flops, wide.flops);
  const auto factor = [&](const hardware::Device& device, double rate) {
    return attention_products(narrow, device, rate).value() / attention_products(wide, device, rate).value();
  };
  hardware::Device h100 = a100();
  h100.peak[hardware::Arithmetic::kFp16] = base::FlopsPerSecond(989.4e12);
  h100.multiprocessors = 132;
  EXPECT_NEAR(factor(h100, 1), 1.3, 1e-9);
  EXPECT_NEAR(factor(h100, 0.65), 1.195, 1e-9);
  EXPECT_NEAR(factor(a100(), 1), 1, 1e-9);
  h100.multiprocessors = 40;  // products so fast that half of the time is softmax
  EXPECT_NEAR(factor(h100, 1), 1.5, 1e-9);
}

}  // namespace
}  // namespace trivium::simulator
