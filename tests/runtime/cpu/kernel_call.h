// Calling a kernel on vectors, seeded inputs, and gradients by central differences.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <type_traits>
#include <vector>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/variant.h"

namespace trivium::runtime::cpu {

using program::OpKind;

/// One call of a kernel. `type` is the arithmetic of the kernel; operands are vectors, which must outlive `run`.
struct Call {
  Call(OpKind kind, std::int64_t m, std::int64_t n, std::int64_t k = 0) {
    op.kind = kind;
    op.m = m;
    op.n = n;
    op.k = k;
    arguments.op = &op;
    arguments.values = &values;
    arguments.routing = &routing;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  template <class T>
  Call& in(std::size_t i, const std::vector<T>& x) {
    arguments.in[i] = reinterpret_cast<std::byte*>(const_cast<T*>(x.data()));
    return *this;
  }
  template <class T>
  Call& out(std::size_t i, std::vector<T>& y) {
    arguments.out[i] = reinterpret_cast<std::byte*>(y.data());
    return *this;
  }
  template <class T>
  void run(std::optional<Variant> variant = {}) {
    op.dtype = std::is_same_v<T, float> ? program::DType::kFp32 : program::DType::kFp64;
    const Kernel kernel = variant ? find_kernel(*variant, op.kind, op.dtype) : find_kernel(op.kind, op.dtype);
    ASSERT_NE(kernel, nullptr);
    kernel(arguments);
  }

  program::Op op;
  StepValues values;
  program::Routing routing;
  KernelArguments arguments;
};

/// `count` numbers uniform in [-1, 1), the same for the same seed. Every one is exact as a float, so that kernels of
/// both types can be given the same input.
inline std::vector<double> numbers(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<double> result(static_cast<std::size_t>(count));
  for (double& x : result) x = static_cast<double>(generator() >> 8) / 8388608.0 - 1.0;
  return result;
}

template <class T>
std::vector<T> converted(const std::vector<double>& x) {
  std::vector<T> result;
  for (const double value : x) result.push_back(static_cast<T>(value));
  return result;
}

inline std::vector<double> zeros(std::int64_t count) { return std::vector<double>(static_cast<std::size_t>(count)); }

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

inline double largest(const std::vector<double>& x) {
  double result = 0;
  for (const double value : x) result = std::fmax(result, std::fabs(value));
  return result;
}

/// |a - b| <= tolerance * max(1, largest |b|), element by element.
inline void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  const double bound = tolerance * std::fmax(1.0, largest(b));
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], bound) << "element " << i;
}

/// fp64 kernels against loops of the test: sums of at most a few hundred terms of order 1, each rounded to 1.1e-16, and
/// exponentials good to a few units in the last place.
constexpr double kRounding = 1e-13;

/// Checks that gradient[i] - already[i] = d objective / d x[i] by central differences, `already` being what a "+="
/// output held before. With h = 1e-5 and objectives of order 10 the truncation error is h^2 f'''/6 ~ 1e-10 and the
/// rounding error 1e-16 * 10 / h ~ 1e-10; 1e-8 of the largest gradient stands well above both and far below any wrong
/// factor.
inline void expect_gradient(std::vector<double>& x, const std::vector<double>& gradient,
                            const std::function<double()>& objective, double already = 0) {
  constexpr double kStep = 1e-5, kTolerance = 1e-8;
  ASSERT_EQ(x.size(), gradient.size());
  std::vector<double> expected, got;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    x[i] = kept + kStep;
    const double above = objective();
    x[i] = kept - kStep;
    const double below = objective();
    x[i] = kept;
    expected.push_back((above - below) / (2 * kStep));
    got.push_back(gradient[i] - already);
  }
  ASSERT_GT(largest(expected), 1e-3) << "the objective does not depend on this operand";
  expect_near(got, expected, kTolerance);
}

}  // namespace trivium::runtime::cpu
