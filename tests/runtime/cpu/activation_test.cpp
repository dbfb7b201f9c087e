// Activations and the residual connection against their definitions and central differences.

#include <algorithm>
#include <numbers>

#include "models/model.h"
#include "tests/runtime/cpu/kernel_call.h"

namespace trivium::runtime::cpu {
namespace {

constexpr std::int64_t kM = 3, kN = 9;

double gelu(double u) {
  return 0.5 * u * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (u + 0.044715 * u * u * u)));
}
double silu(double u) { return u / (1 + std::exp(-u)); }

class Activation : public testing::TestWithParam<models::Activation> {
 protected:
  std::vector<double> forward() const {
    std::vector<double> y = zeros(kM * kN);
    Call call(OpKind::kActivation, kM, kN, static_cast<std::int64_t>(kind));
    call.in(0, x).in(1, bias).out(0, y).run<double>();
    return y;
  }
  models::Activation kind = GetParam();
  bool gated = models::is_gated(kind);
  std::int64_t width = gated ? 2 * kN : kN;
  std::vector<double> x = numbers(kM * width, 1), bias = numbers(width, 2), dy = numbers(kM * kN, 3);
};

TEST_P(Activation, IsItsDefinitionAfterTheBias) {
  for (double& value : x) value *= 9;  // reach the flat ends
  std::vector<double> want;
  for (std::size_t r = 0; r < kM; ++r) {
    for (std::size_t j = 0; j < kN; ++j) {
      const double u = x[r * static_cast<std::size_t>(width) + j] + bias[j];
      const double up = gated ? x[r * static_cast<std::size_t>(width) + kN + j] + bias[kN + j] : 1;
      switch (kind) {
        case models::Activation::kGelu:
        case models::Activation::kGeglu:
          want.push_back(gelu(u) * up);
          break;
        case models::Activation::kSwiglu:
          want.push_back(silu(u) * up);
          break;
        case models::Activation::kClampedSwiglu: {
          const double gate = std::min(u, 7.0);
          want.push_back(gate / (1 + std::exp(-1.702 * gate)) * (std::clamp(up, -7.0, 7.0) + 1));
          break;
        }
        case models::Activation::kRelu:
          want.push_back(std::fmax(u, 0));
          break;
        case models::Activation::kGeluErf:
          want.push_back(0.5 * u * (1 + std::erf(u / std::numbers::sqrt2)));
          break;
        case models::Activation::kSquaredRelu:
          want.push_back(u > 0 ? u * u : 0);
          break;
      }
    }
  }
  expect_near(forward(), want, kRounding);
}

TEST_P(Activation, BackwardIsTheDerivativeByInputAndBias) {
  std::vector<double> dx = zeros(kM * width), dbias(static_cast<std::size_t>(width), 0.25), over_x = x;
  Call call(OpKind::kActivationBackward, kM, kN, static_cast<std::int64_t>(kind));
  call.in(0, x).in(1, bias).in(2, dy).out(0, dx).out(1, dbias).run<double>();
  const auto objective = [&] { return dot(dy, forward()); };
  expect_gradient(x, dx, objective);
  expect_gradient(bias, dbias, objective, 0.25);
  call.in(0, over_x).out(0, over_x).run<double>();
  EXPECT_EQ(over_x, dx);
}

INSTANTIATE_TEST_SUITE_P(Kind, Activation,
                         testing::Values(models::Activation::kGelu, models::Activation::kRelu,
                                         models::Activation::kSwiglu, models::Activation::kGeglu,
                                         models::Activation::kGeluErf, models::Activation::kSquaredRelu,
                                         models::Activation::kClampedSwiglu));

// Gates 8, 2, 1 and values 3, 9, 1: what is cut has no gradient.
TEST(ClampedSwiglu, HasNoGradientBeyondItsLimit) {
  const std::vector<double> x{8, 2, 1, 3, 9, 1}, dy{1, 1, 1};
  std::vector<double> dx(6);
  Call call(OpKind::kActivationBackward, 1, 3, static_cast<std::int64_t>(models::Activation::kClampedSwiglu));
  call.in(0, x).in(2, dy).out(0, dx).run<double>();
  const auto f = [](double u) { return u / (1 + std::exp(-1.702 * u)); };
  EXPECT_EQ(dx[0], 0);
  EXPECT_NEAR(dx[3], f(7), kRounding);
  EXPECT_NEAR(dx[1], (f(2 + 1e-6) - f(2 - 1e-6)) / 2e-6 * 8, 1e-7);
  EXPECT_EQ(dx[4], 0);
  EXPECT_NEAR(dx[5], f(1), kRounding);
}

TEST(ActivationWithoutBias, TakesTheInputAsItIs) {
  const std::vector<double> x{-1, 2}, dy{10, 100};
  std::vector<double> y(2), dx(2);
  Call(OpKind::kActivation, 1, 2, static_cast<std::int64_t>(models::Activation::kRelu))
      .in(0, x)
      .out(0, y)
      .run<double>();
  EXPECT_EQ(y, (std::vector<double>{0, 2}));
  Call(OpKind::kActivationBackward, 1, 2, static_cast<std::int64_t>(models::Activation::kRelu))
      .in(0, x)
      .in(2, dy)
      .out(0, dx)
      .run<double>();
  EXPECT_EQ(dx, (std::vector<double>{0, 100}));
}

// Far out GELU is 0 or the input itself; neither may become NaN.
TEST(ActivationGelu, IsFlatFarFromZero) {
  const std::vector<float> x{-1000, 1000};
  std::vector<float> y(2);
  Call(OpKind::kActivation, 1, 2, 0).in(0, x).out(0, y).run<float>();
  EXPECT_NEAR(y[0], 0, 1e-30);
  EXPECT_EQ(y[1], 1000);
}

TEST(BiasResidual, AddsSkipInputAndBias) {
  const std::vector<double> x{1, 2, 3, 4}, bias{10, 20}, skip{100, 200, 300, 400};
  std::vector<double> y(4);
  Call(OpKind::kBiasResidual, 2, 2).in(0, x).in(1, bias).in(2, skip).out(0, y).run<double>();
  EXPECT_EQ(y, (std::vector<double>{111, 222, 313, 424}));
  Call(OpKind::kBiasResidual, 2, 2).in(0, x).in(2, skip).out(0, y).run<double>();
  EXPECT_EQ(y, (std::vector<double>{101, 202, 303, 404}));
}

TEST(BiasResidual, BackwardAddsTheColumnSumsToTheBias) {
  const std::vector<double> dy{1, 2, 3, 4};
  std::vector<double> dbias{100, 200};
  Call(OpKind::kBiasResidualBackward, 2, 2).in(0, dy).out(0, dbias).run<double>();
  EXPECT_EQ(dbias, (std::vector<double>{104, 206}));
}

}  // namespace
}  // namespace trivium::runtime::cpu
