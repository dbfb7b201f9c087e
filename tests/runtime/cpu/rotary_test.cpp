// Rotary embedding against its definition; its backward is its transpose.

#include <complex>

#include "tests/runtime/cpu/kernel_call.h"

namespace trivium::runtime::cpu {
namespace {

constexpr int kTurnedHeads = 3, kTurnedKvHeads = 1, kTurnedDim = 6, kTurnedSequence = 4;
constexpr int kTurnedWidth = (kTurnedHeads + 2 * kTurnedKvHeads) * kTurnedDim;

/// All of a head's components turn, theta 10,000.
program::RotaryTable usual() {
  program::RotaryTable table;
  for (int i = 0; i < kTurnedDim / 2; ++i) table.frequencies.push_back(std::pow(10000.0, -2.0 * i / kTurnedDim));
  return table;
}

std::vector<double> turned(OpKind kind, std::vector<double> qkv, std::int64_t tokens, int tensor_rank = 0,
                           bool token_sharded = false, const program::RotaryTable& rotary = usual()) {
  Call call(kind, tokens, (kTurnedHeads + kTurnedKvHeads) * kTurnedDim);
  call.op.heads = kTurnedHeads;
  call.op.kv_heads = kTurnedKvHeads;
  call.op.head_dim = kTurnedDim;
  call.op.sequence = kTurnedSequence;
  call.op.token_sharded = token_sharded;
  call.arguments.tensor_rank = tensor_rank;
  call.arguments.rotary = &rotary;
  call.in(0, qkv).out(0, qkv).run<double>();
  return qkv;
}

// Components i and i + dim/2 are the real and imaginary part of a number that is multiplied by exp(i angle).
TEST(Rotary, TurnsEveryQueryAndKeyHeadByItsPositionAndLeavesTheValues) {
  const std::vector<double> qkv = numbers(8 * kTurnedWidth, 1);
  std::vector<double> want = qkv;
  for (std::size_t t = 0; t < 8; ++t) {
    for (std::size_t h = 0; h < kTurnedHeads + kTurnedKvHeads; ++h) {
      for (std::size_t i = 0; i < kTurnedDim / 2; ++i) {
        const double angle =
            static_cast<double>(t % kTurnedSequence) * std::pow(10000.0, -2.0 * static_cast<double>(i) / kTurnedDim);
        const std::size_t first = t * kTurnedWidth + h * kTurnedDim + i, second = first + kTurnedDim / 2;
        const auto z = std::complex<double>(qkv[first], qkv[second]) * std::polar(1.0, angle);
        want[first] = z.real();
        want[second] = z.imag();
      }
    }
  }
  expect_near(turned(OpKind::kRotary, qkv, 8), want, kRounding);
}

TEST(Rotary, BackwardIsTheDerivative) {
  std::vector<double> qkv = numbers(5 * kTurnedWidth, 1);
  const std::vector<double> dy = numbers(5 * kTurnedWidth, 2);
  expect_gradient(qkv, turned(OpKind::kRotaryBackward, dy, 5),
                  [&] { return dot(dy, turned(OpKind::kRotary, qkv, 5)); });
}

// Rank 1 of a split of 6 tokens holds rows 3, 4, 5.
TEST(Rotary, StartsWhereThisRanksPartOfTheTokensStarts) {
  const std::vector<double> qkv = numbers(6 * kTurnedWidth, 1);
  const std::vector<double> whole = turned(OpKind::kRotary, qkv, 6);
  const std::vector<double> part = turned(OpKind::kRotary, {qkv.begin() + 3 * kTurnedWidth, qkv.end()}, 3, 1, true);
  expect_near(part, {whole.begin() + 3 * kTurnedWidth, whole.end()}, kRounding);
}

// GPT-NeoX turns a part of every head: components 0 and 2, 1 and 3 of six; the last two stay.
TEST(Rotary, LeavesComponentsBehindThePairs) {
  const std::vector<double> qkv = numbers(4 * kTurnedWidth, 1);
  const program::RotaryTable table{{1, 0.25}, 1};
  const std::vector<double> y = turned(OpKind::kRotary, qkv, 4, 0, false, table);
  for (std::size_t t = 0; t < 4; ++t) {
    const std::size_t head = t * kTurnedWidth + kTurnedDim;  // the second
    const auto second = static_cast<double>(t) * 0.25;
    EXPECT_NEAR(y[head + 1], qkv[head + 1] * std::cos(second) - qkv[head + 3] * std::sin(second), kRounding);
    EXPECT_NEAR(y[head + 3], qkv[head + 3] * std::cos(second) + qkv[head + 1] * std::sin(second), kRounding);
    EXPECT_EQ(y[head + 4], qkv[head + 4]);
    EXPECT_EQ(y[head + 5], qkv[head + 5]);
  }
}

// YaRN lengthens what turns; the next call has other frequencies of the same number.
TEST(Rotary, TakesTheTableItIsGivenEveryTime) {
  const std::vector<double> qkv = numbers(4 * kTurnedWidth, 1);
  const program::RotaryTable still{{0, 0, 0}, 1}, longer{{0, 0, 0}, 1.5};
  EXPECT_EQ(turned(OpKind::kRotary, qkv, 4, 0, false, still), qkv);
  const std::vector<double> y = turned(OpKind::kRotary, qkv, 4, 0, false, longer);
  EXPECT_NEAR(y[0], 1.5 * qkv[0], kRounding);
  EXPECT_EQ(y.back(), qkv.back());  // a value
  EXPECT_EQ(turned(OpKind::kRotary, qkv, 4, 0, false, still), qkv);
}

// Runs of 3 tokens: positions 0 and 1 follow no whole run, 2 to 4 one (with their own), 5 two. Keys and values stay.
TEST(ScaleQueries, GrowWithTheRunsBehindThem) {
  constexpr std::int64_t kTokens = 12, kSpan = 6;  // two samples
  const std::vector<double> qkv = numbers(kTokens * kTurnedWidth, 1);
  std::vector<double> want = qkv, got = qkv;
  for (std::int64_t t = 0; t < kTokens; ++t) {
    const std::int64_t p = t % kSpan;
    const double factor = 1 + 0.5 * std::log(1.0 + (p < 2 ? 0 : p < 5 ? 1 : 2));
    for (std::int64_t i = 0; i < kTurnedHeads * kTurnedDim; ++i)
      want[static_cast<std::size_t>(t * kTurnedWidth + i)] *= factor;
  }
  Call call(OpKind::kScaleQueries, kTokens, kTurnedHeads * kTurnedDim, 3);
  call.op.heads = kTurnedHeads, call.op.kv_heads = kTurnedKvHeads, call.op.head_dim = kTurnedDim;
  call.op.sequence = kSpan;
  call.op.score_scale = 0.5;
  call.in(0, got).out(0, got).run<double>();
  expect_near(got, want, kRounding);
}

}  // namespace
}  // namespace trivium::runtime::cpu
