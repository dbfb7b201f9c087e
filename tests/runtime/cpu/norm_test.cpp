// Layer and RMS normalisation against their definitions and central differences; aliasing of the backward.

#include <utility>

#include "tests/runtime/cpu/kernel_call.h"

namespace trivium::runtime::cpu {
namespace {

constexpr std::int64_t kNormRows = 4, kNormWidth = 13;

struct Normed {
  std::vector<double> y, stats;
};

class Norm : public testing::TestWithParam<bool> {  // the parameter: with bias, that is LayerNorm
 protected:
  Normed forward() const {
    Normed result{zeros(kNormRows * kNormWidth), zeros(kNormRows * 2)};
    Call call(OpKind::kNorm, kNormRows, kNormWidth);
    call.in(0, x).in(1, weight).out(0, result.y).out(1, result.stats);
    if (layer_norm) call.in(2, bias);
    call.run<double>();
    return result;
  }
  /// Backward into `dx`, which may be `x` or `skip` itself; the sums start at 0.25.
  void backward(const std::vector<double>& input, const std::vector<double>* skip, std::vector<double>& dx) {
    const std::vector<double> stats = forward().stats;
    dweight.assign(kNormWidth, 0.25);
    dbias.assign(kNormWidth, 0.25);
    Call call(OpKind::kNormBackward, kNormRows, kNormWidth);
    call.in(0, input).in(1, weight).in(2, stats).in(3, dy).out(0, dx).out(1, dweight);
    if (skip != nullptr) call.in(4, *skip);
    if (layer_norm) call.out(2, dbias);
    call.run<double>();
  }

  bool layer_norm = GetParam();
  std::vector<double> x = numbers(kNormRows * kNormWidth, 1), weight = numbers(kNormWidth, 2),
                      bias = numbers(kNormWidth, 3), dy = numbers(kNormRows * kNormWidth, 4);
  std::vector<double> dskip = numbers(kNormRows * kNormWidth, 5), dweight, dbias;
};

TEST_P(Norm, HasTheMeanAndVarianceOfItsDefinition) {
  const Normed got = forward();
  Normed want{zeros(kNormRows * kNormWidth), zeros(kNormRows * 2)};
  for (std::size_t r = 0; r < kNormRows; ++r) {
    double mean = 0, variance = 0;
    for (std::size_t j = 0; j < kNormWidth && layer_norm; ++j) mean += x[r * kNormWidth + j] / kNormWidth;
    for (std::size_t j = 0; j < kNormWidth; ++j) variance += std::pow(x[r * kNormWidth + j] - mean, 2) / kNormWidth;
    const double inverse = 1 / std::sqrt(variance + 1e-5);
    want.stats[2 * r] = mean;
    want.stats[2 * r + 1] = inverse;
    for (std::size_t j = 0; j < kNormWidth; ++j) {
      want.y[r * kNormWidth + j] = (x[r * kNormWidth + j] - mean) * inverse * weight[j] + (layer_norm ? bias[j] : 0);
    }
  }
  expect_near(got.y, want.y, kRounding);
  expect_near(got.stats, want.stats, kRounding);
}

TEST_P(Norm, BackwardIsTheDerivativeAndAddsTheSkip) {
  std::vector<double> dx = zeros(kNormRows * kNormWidth);
  backward(x, nullptr, dx);
  const auto objective = [&] { return dot(dy, forward().y); };
  expect_gradient(x, dx, objective);
  expect_gradient(weight, dweight, objective, 0.25);
  if (layer_norm) expect_gradient(bias, dbias, objective, 0.25);

  std::vector<double> with_skip = zeros(kNormRows * kNormWidth), sum = dx;
  backward(x, &dskip, with_skip);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += dskip[i];
  expect_near(with_skip, sum, kRounding);
}

TEST_P(Norm, BackwardMayWriteOverItsInputOrItsSkip) {
  std::vector<double> apart = zeros(kNormRows * kNormWidth), over_x = x, over_skip = dskip;
  backward(x, &dskip, apart);
  const std::vector<double> dweight_apart = dweight;
  backward(over_x, &dskip, over_x);
  EXPECT_EQ(over_x, apart);
  EXPECT_EQ(dweight, dweight_apart);
  backward(x, &over_skip, over_skip);
  EXPECT_EQ(over_skip, apart);
}

INSTANTIATE_TEST_SUITE_P(Kind, Norm, testing::Bool(),
                         [](const auto& instance) { return instance.param ? "Layer" : "Rms"; });

// Rows of two query heads, one of keys and one of values, four components each.
struct HeadNorms {
  static constexpr std::int64_t kRows = 3, kDim = 4, kHeads = 2, kWidth = (kHeads + 2) * kDim;
  std::vector<double> x = numbers(kRows * kWidth, 1), q_weight = numbers(kDim, 2), k_weight = numbers(kDim, 3),
                      dy = numbers(kRows * kWidth, 4);

  static void describe(Call& call) {
    call.op.heads = kHeads;
    call.op.kv_heads = 1;
    call.op.head_dim = kDim;
    call.op.epsilon = 1e-3;
  }
  std::pair<std::vector<double>, std::vector<double>> forward() const {
    std::pair<std::vector<double>, std::vector<double>> result{zeros(kRows * kWidth), zeros(kRows * (kHeads + 1))};
    Call call(OpKind::kHeadNorm, kRows, kDim);
    describe(call);
    call.in(0, x).in(1, q_weight).in(2, k_weight).out(0, result.first).out(1, result.second).run<double>();
    return result;
  }
};

TEST(HeadNorm, DividesEveryQueryAndKeyHeadByItsRootMeanSquare) {
  const HeadNorms t;
  std::vector<double> want = t.x;
  for (std::size_t r = 0; r < HeadNorms::kRows; ++r) {
    for (std::size_t h = 0; h < HeadNorms::kHeads + 1; ++h) {
      const std::size_t at = r * HeadNorms::kWidth + h * HeadNorms::kDim;
      double squares = 0;
      for (std::size_t i = 0; i < HeadNorms::kDim; ++i) squares += t.x[at + i] * t.x[at + i] / HeadNorms::kDim;
      const std::vector<double>& weight = h < HeadNorms::kHeads ? t.q_weight : t.k_weight;
      for (std::size_t i = 0; i < HeadNorms::kDim; ++i) want[at + i] *= weight[i] / std::sqrt(squares + 1e-3);
    }
  }
  expect_near(t.forward().first, want, kRounding);
}

TEST(HeadNorm, BackwardIsTheDerivativeAlsoInPlace) {
  HeadNorms t;
  std::vector<double> dx = zeros(HeadNorms::kRows * HeadNorms::kWidth), dq(HeadNorms::kDim, 0.25), dk = dq;
  const std::vector<double> sigma = t.forward().second;
  Call call(OpKind::kHeadNormBackward, HeadNorms::kRows, HeadNorms::kDim);
  HeadNorms::describe(call);
  call.in(0, t.x).in(1, t.q_weight).in(2, t.k_weight).in(3, sigma).in(4, t.dy);
  call.out(0, dx).out(1, dq).out(2, dk).run<double>();
  const auto objective = [&] { return dot(t.dy, t.forward().first); };
  expect_gradient(t.x, dx, objective);
  expect_gradient(t.q_weight, dq, objective, 0.25);
  expect_gradient(t.k_weight, dk, objective, 0.25);
  std::vector<double> in_place = t.dy;
  call.in(4, in_place).out(0, in_place).run<double>();
  EXPECT_EQ(in_place, dx);
}

// Weights of 1 and none are the same.
TEST(HeadNorm, WithoutWeightsLeavesRootMeanSquaresOfOne) {
  HeadNorms t;
  t.q_weight = t.k_weight = std::vector<double>(HeadNorms::kDim, 1);
  const auto [want, sigma] = t.forward();
  std::vector<double> y(want.size()), got_sigma(sigma.size()), dx(want.size()), want_dx(want.size());
  std::vector<double> dq(HeadNorms::kDim), dk(HeadNorms::kDim);
  Call plain(OpKind::kHeadNorm, HeadNorms::kRows, HeadNorms::kDim);
  HeadNorms::describe(plain);
  plain.in(0, t.x).out(0, y).out(1, got_sigma).run<double>();
  EXPECT_EQ(y, want);
  EXPECT_EQ(got_sigma, sigma);
  Call weighed(OpKind::kHeadNormBackward, HeadNorms::kRows, HeadNorms::kDim);
  HeadNorms::describe(weighed);
  weighed.in(0, t.x).in(1, t.q_weight).in(2, t.k_weight).in(3, sigma).in(4, t.dy);
  weighed.out(0, want_dx).out(1, dq).out(2, dk).run<double>();
  Call back(OpKind::kHeadNormBackward, HeadNorms::kRows, HeadNorms::kDim);
  HeadNorms::describe(back);
  back.in(0, t.x).in(3, sigma).in(4, t.dy).out(0, dx).run<double>();
  EXPECT_EQ(dx, want_dx);
}

}  // namespace
}  // namespace trivium::runtime::cpu
