// Matrix products of the linear layers against naive loops and central differences.

#include "tests/runtime/cpu/kernel_call.h"

namespace trivium::runtime::cpu {
namespace {

constexpr std::int64_t kM = 7, kN = 5, kK = 11;  // odd, so that vector remainders are met

std::size_t at(std::int64_t row, std::int64_t column, std::int64_t columns) {
  return static_cast<std::size_t>(row * columns + column);
}

std::vector<double> forward(const std::vector<double>& x, const std::vector<double>& w, const std::vector<double>* bias,
                            bool transposed) {
  std::vector<double> y(kM * kN, 99);  // what the buffer held before must not matter
  Call call(OpKind::kMatmul, kM, kN, kK);
  call.op.weight_transposed = transposed;
  call.in(0, x).in(1, w).out(0, y);
  if (bias != nullptr) call.in(2, *bias);
  call.run<double>();
  return y;
}

class Matmul : public testing::TestWithParam<bool> {
 protected:
  std::vector<double> x = numbers(kM * kK, 1), w = numbers(kK * kN, 2), bias = numbers(kN, 3), dy = numbers(kM * kN, 4);
  bool transposed = GetParam();
};

TEST_P(Matmul, IsTheSumOverTheInnerIndexPlusTheBias) {
  std::vector<double> with_bias = zeros(kM * kN), without = zeros(kM * kN);
  for (std::int64_t i = 0; i < kM; ++i) {
    for (std::int64_t j = 0; j < kN; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < kK; ++l) sum += x[at(i, l, kK)] * w[transposed ? at(j, l, kK) : at(l, j, kN)];
      without[at(i, j, kN)] = sum;
      with_bias[at(i, j, kN)] = sum + bias[static_cast<std::size_t>(j)];
    }
  }
  expect_near(forward(x, w, nullptr, transposed), without, kRounding);
  expect_near(forward(x, w, &bias, transposed), with_bias, kRounding);
}

TEST_P(Matmul, DgradIsTheDerivativeByTheInput) {
  std::vector<double> dx(kM * kK, 99);
  Call call(OpKind::kMatmulDgrad, kM, kN, kK);
  call.op.weight_transposed = transposed;
  call.in(0, dy).in(1, w).out(0, dx).run<double>();
  expect_gradient(x, dx, [&] { return dot(dy, forward(x, w, &bias, transposed)); });
}

TEST_P(Matmul, WgradAddsTheDerivativesByWeightAndBias) {
  std::vector<double> dw(kK * kN, 0.25), dbias(kN, 0.25);
  Call call(OpKind::kMatmulWgrad, kM, kN, kK);
  call.op.weight_transposed = transposed;
  call.in(0, x).in(1, dy).out(0, dw).out(1, dbias).run<double>();
  expect_gradient(
      w, dw, [&] { return dot(dy, forward(x, w, &bias, transposed)); }, 0.25);
  expect_gradient(
      bias, dbias, [&] { return dot(dy, forward(x, w, &bias, transposed)); }, 0.25);
}

TEST_P(Matmul, GivesTheSameBitsEveryTime) {
  EXPECT_EQ(forward(x, w, &bias, transposed), forward(x, w, &bias, transposed));
}

INSTANTIATE_TEST_SUITE_P(Weight, Matmul, testing::Bool(),
                         [](const auto& instance) { return instance.param ? "StoredOutIn" : "StoredInOut"; });

}  // namespace
}  // namespace trivium::runtime::cpu
