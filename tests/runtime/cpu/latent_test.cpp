// Latent attention's norms and heads against their definitions and central differences; values narrower than keys.
#include <cmath>

#include "tests/runtime/cpu/kernel_call.h"

namespace trivium::runtime::cpu {
namespace {

// Rows of a latent of queries (5), of keys (4), and two components that all keys share.
struct Latents {
  static constexpr std::int64_t kRows = 3, kQuery = 5, kKey = 4, kShared = 2, kWidth = kQuery + kKey + kShared;
  std::vector<double> x = numbers(kRows * kWidth, 1), q_weight = numbers(kQuery, 2), k_weight = numbers(kKey, 3);

  static void describe(Call& call) {
    call.op.elements = kQuery;
    call.op.epsilon = 1e-3;
  }
  std::pair<std::vector<double>, std::vector<double>> forward() const {
    std::pair<std::vector<double>, std::vector<double>> y{zeros(kRows * kQuery), zeros(kRows * kKey)};
    Call call(OpKind::kLatentNorm, kRows, kKey, kShared);
    describe(call);
    call.in(0, x).in(1, q_weight).in(2, k_weight).out(0, y.first).out(1, y.second).run<double>();
    return y;
  }
};

TEST(LatentNorm, DividesBothLatentsByTheirRootMeanSquares) {
  const Latents t;
  const auto [q, k] = t.forward();
  for (std::size_t r = 0; r < Latents::kRows; ++r) {
    double squares = 0;
    for (std::size_t i = 0; i < 4; ++i) squares += std::pow(t.x[r * Latents::kWidth + 5 + i], 2) / 4;
    EXPECT_NEAR(k[r * 4 + 1], t.x[r * Latents::kWidth + 6] * t.k_weight[1] / std::sqrt(squares + 1e-3), kRounding);
    squares = 0;
    for (std::size_t i = 0; i < 5; ++i) squares += std::pow(t.x[r * Latents::kWidth + i], 2) / 5;
    EXPECT_NEAR(q[r * 5], t.x[r * Latents::kWidth] * t.q_weight[0] / std::sqrt(squares + 1e-3), kRounding);
  }
}

TEST(LatentNorm, BackwardIsTheDerivativeAndLeavesWhatKeysShare) {
  Latents t;
  const std::vector<double> dq = numbers(Latents::kRows * 5, 4), dk = numbers(Latents::kRows * 4, 5);
  std::vector<double> dx(t.x.size(), 0.0), d_q_weight(5, 0.25), d_k_weight(4, 0.25);
  for (std::size_t r = 0; r < Latents::kRows; ++r) dx[r * Latents::kWidth + 9] = 7;
  Call call(OpKind::kLatentNormBackward, Latents::kRows, Latents::kKey, Latents::kShared);
  Latents::describe(call);
  call.in(0, t.x).in(1, t.q_weight).in(2, t.k_weight).in(3, dq).in(4, dk);
  call.out(0, dx).out(1, d_q_weight).out(2, d_k_weight).run<double>();
  for (std::size_t r = 0; r < Latents::kRows; ++r) {
    EXPECT_EQ(dx[r * Latents::kWidth + 9], 7);
    dx[r * Latents::kWidth + 9] = 0;
  }
  const auto objective = [&] {
    const auto [q, k] = t.forward();
    return dot(dq, q) + dot(dk, k);
  };
  expect_gradient(t.x, dx, objective);
  expect_gradient(t.q_weight, d_q_weight, objective, 0.25);
  expect_gradient(t.k_weight, d_k_weight, objective, 0.25);
}

// One row, two heads of 2 shared and 1 plain component, values of 2; one latent component before what keys share.
TEST(LatentHeads, KeysShareComponentsAndTheirGradientsAddUp) {
  const auto describe = [](Call& call) {
    call.op.heads = call.op.kv_heads = 2, call.op.head_dim = 3, call.op.value_dim = 2;
  };
  const std::vector<double> q{1, 2, 3, 4, 5, 6}, made{10, 11, 12, 20, 21, 22}, latents{-1, 7, 8};
  std::vector<double> qkv(16);
  Call call(OpKind::kLatentHeads, 1, 3, 2);
  describe(call);
  call.in(0, q).in(1, made).in(2, latents).out(0, qkv).run<double>();
  EXPECT_EQ(qkv, (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 10, 7, 8, 20, 11, 12, 21, 22}));
  std::vector<double> dq(6), d_made(6), d_latents{-5, 0, 0};
  Call back(OpKind::kLatentHeadsBackward, 1, 3, 2);
  describe(back);
  back.in(0, qkv).out(0, dq).out(1, d_made).out(2, d_latents).run<double>();
  EXPECT_EQ(dq, q);
  EXPECT_EQ(d_made, made);
  EXPECT_EQ(d_latents, (std::vector<double>{-5, 14, 16}));
}

// Queries and keys of three components, values of two: as attention of three where the last of each value is 0.
TEST(Attention, ValuesMayBeNarrowerThanKeys) {
  constexpr std::int64_t kTokens = 5, kHeads = 2;
  const std::vector<double> narrow = numbers(kTokens * kHeads * 8, 1), dy = numbers(kTokens * kHeads * 2, 2);
  const auto widened = [&](const std::vector<double>& x, std::size_t before, std::size_t width) {
    std::vector<double> wide;
    for (std::size_t i = 0; i < x.size(); ++i) {
      wide.push_back(x[i]);
      const std::size_t column = i % width;
      if (column >= before && (column - before) % 2 == 1) wide.push_back(0);
    }
    return wide;
  };
  for (const bool flash : {false, true}) {
    const auto attend = [&](const std::vector<double>& qkv, const std::vector<double>& gradient, int value_dim) {
      const auto out = static_cast<std::int64_t>(gradient.size());
      std::vector<double> y = zeros(out), saved = zeros(kHeads * kTokens * kTokens), d = zeros(std::ssize(qkv));
      Call forward(OpKind::kAttention, kTokens, out / kTokens),
          back(OpKind::kAttentionBackward, kTokens, out / kTokens);
      for (Call* call : {&forward, &back}) {
        call->op.heads = call->op.kv_heads = kHeads, call->op.head_dim = 3, call->op.value_dim = value_dim;
        call->op.sequence = kTokens, call->op.flash = flash;
      }
      forward.in(0, qkv).out(0, y).out(1, saved).run<double>();
      back.in(0, qkv).in(1, y).in(2, saved).in(3, gradient).out(0, d).run<double>();
      return std::pair(y, d);
    };
    const auto [y, d] = attend(narrow, dy, 2);
    const auto [wide_y, wide_d] = attend(widened(narrow, 12, 16), widened(dy, 0, 4), 0);
    expect_near(widened(y, 0, 4), wide_y, kRounding);
    std::vector<double> kept;
    for (std::size_t i = 0; i < wide_d.size(); ++i) {
      if (i % 18 < 12 || (i % 18 - 12) % 3 < 2) kept.push_back(wide_d[i]);
    }
    expect_near(d, kept, kRounding);
  }
}

}  // namespace
}  // namespace trivium::runtime::cpu
