// Muon's iterations on matrices whose singular values are known.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>
#include <vector>

#include "runtime/cpu/optimizer_loops.h"
#include "tests/runtime/cpu/lacking.h"

namespace trivium::runtime::cpu {
namespace {

using Vectors = std::vector<std::vector<double>>;

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// `count` orthonormal vectors: random ones, of each what those before it leave (Gram and Schmidt, twice).
Vectors orthonormal(std::size_t count, std::size_t length, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Vectors vectors;
  while (vectors.size() < count) {
    std::vector<double> v(length);
    for (double& x : v) x = normal(random);
    for (int twice = 0; twice < 2; ++twice) {
      for (const auto& before : vectors) {
        const double share = dot(v, before);
        for (std::size_t i = 0; i < length; ++i) v[i] -= share * before[i];
      }
    }
    const double norm = std::sqrt(dot(v, v));
    for (double& x : v) x /= norm;
    vectors.push_back(std::move(v));
  }
  return vectors;
}

/// (m, n): the sum over i of s_i u_i v_i^T.
std::vector<double> composed(const Vectors& u, const std::vector<double>& s, const Vectors& v) {
  const std::size_t m = u.front().size(), n = v.front().size();
  std::vector<double> x(m * n, 0);
  for (std::size_t i = 0; i < s.size(); ++i) {
    for (std::size_t r = 0; r < m; ++r) {
      for (std::size_t c = 0; c < n; ++c) x[r * n + c] += s[i] * u[i][r] * v[i][c];
    }
  }
  return x;
}

class NewtonSchulz : public ::testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << lacking(GetParam());
  }

  template <class T>
  std::vector<double> iterated(const std::vector<double>& x, std::size_t m) {
    const std::size_t n = x.size() / m;
    std::vector<T> values, room(m * n + 2 * m * m);
    for (const double value : x) values.push_back(static_cast<T>(value));
    optimizer_loops<T>(GetParam())
        .newton_schulz(values.data(), room.data(), static_cast<std::int64_t>(m), static_cast<std::int64_t>(n), 5);
    return {values.begin(), values.end()};
  }
};

double furthest(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

// s -> 3.4445 s - 4.7750 s^3 + 2.0315 s^5, five times, of s / norm: singular vectors stay, each value goes its way by
// itself. Values above a hundredth of the norm end near 1 (Jordan et al. 2024).
TEST_P(NewtonSchulz, BringsEverySingularValueNearOne) {
  for (const auto& [m, n] : {std::tuple{1U, 1U}, {1U, 40U}, {8U, 8U}, {24U, 64U}, {64U, 64U}, {33U, 97U}}) {
    const Vectors u = orthonormal(m, m, 1), v = orthonormal(m, n, 2);
    std::vector<double> s, expected;
    for (unsigned i = 0; i < m; ++i) s.push_back(1e-3 * std::pow(0.95, i));
    const double norm = std::sqrt(dot(s, s));
    for (const double value : s) {
      double x = value / norm;
      const bool is_large = x > 0.01;
      for (int step = 0; step < 5; ++step) x = 3.4445 * x - 4.7750 * x * x * x + 2.0315 * x * x * x * x * x;
      expected.push_back(x);
      if (!is_large) continue;
      EXPECT_GT(x, 0.67) << m << " x " << n;
      EXPECT_LT(x, 1.21) << m << " x " << n;
    }
    const std::vector<double> x = composed(u, s, v), whole = composed(u, expected, v);
    EXPECT_LT(furthest(iterated<double>(x, m), whole), 1e-11) << m << " x " << n;
    EXPECT_LT(furthest(iterated<float>(x, m), whole), 1e-3) << m << " x " << n;
  }
}

TEST_P(NewtonSchulz, LeavesAMatrixOfZerosAsItIs) {
  const std::vector<double> zeros(15, 0.0);
  EXPECT_EQ(iterated<double>(zeros, 3), zeros);
}

INSTANTIATE_TEST_SUITE_P(InstructionSet, NewtonSchulz, ::testing::Values(Variant::kV2, Variant::kV3, Variant::kV4));

}  // namespace
}  // namespace trivium::runtime::cpu
