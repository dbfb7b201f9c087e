// The optimizer's loops give the same bits on every instruction set, whatever the length.
#include "runtime/cpu/optimizer_loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "runtime/cpu/double_double.h"
#include "tests/runtime/cpu/lacking.h"

namespace trivium::runtime::cpu {
namespace {

template <class T>
std::vector<T> values(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<T> v(static_cast<std::size_t>(count));
  for (T& x : v) x = static_cast<T>(normal(random) * std::pow(10.0, static_cast<double>(random() % 9) - 4));
  return v;
}

class Loops : public ::testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << lacking(GetParam());
  }
};

template <class T>
void expect_exact_squares(Variant variant) {
  for (const std::int64_t count : {0, 1, 31, 32, 33, 1000, 64 * 32, 64 * 32 + 7, 100'003}) {
    const std::vector<T> x = values<T>(count, 7);
    DoubleDouble expected;  // one element after the other
    for (const T v : x) expected = expected + exact_square(v);
    DoubleDouble sum;
    optimizer_loops<T>(variant).squares(x.data(), count, &sum.hi, &sum.lo);
    EXPECT_EQ(sum.rounded(), expected.rounded()) << count;
    // Far more of it than a double holds.
    EXPECT_LE(std::abs((sum.hi - expected.hi) + (sum.lo - expected.lo)), 0x1p-92 * expected.hi) << count;
  }
}

TEST_P(Loops, SquaresAreSummedToTwiceThePrecision) {
  expect_exact_squares<float>(GetParam());
  expect_exact_squares<double>(GetParam());
}

// One element by the formula of the paper (optimizer.cpp), rounded after every operation.
TEST_P(Loops, AdamWGivesEveryElementItsOwnBits) {
  const AdamWFactors<float> f{0.7F, 1e-3F, 0.9F, 0.1F, 0.95F, 0.05F, 2.5F, 8.0F, 1e-8F, 0.1F};
  for (const std::int64_t count : {1, 15, 16, 17, 1003}) {
    std::vector<float> p = values<float>(count, 1), m = values<float>(count, 3), v = values<float>(count, 4);
    const std::vector<float> g = values<float>(count, 2);
    for (float& x : v) x = std::abs(x);
    std::vector<float> expected = p;
    for (std::size_t i = 0; i < g.size(); ++i) {
      const volatile float clipped = g[i] * f.clip;
      const volatile float m1 = f.beta1 * m[i], m2 = f.rest1 * clipped, first = m1 + m2;
      const volatile float v1 = f.beta2 * v[i], v2 = f.rest2 * clipped, v3 = v2 * clipped, second = v1 + v3;
      const volatile float top = first * f.correct1, inside = second * f.correct2, root = std::sqrt(inside);
      const volatile float bottom = root + f.epsilon, ratio = top / bottom, decayed = f.decay * expected[i];
      const volatile float direction = ratio + decayed, change = f.rate * direction;
      expected[i] = expected[i] - change;
    }
    optimizer_loops<float>(GetParam()).adamw(f, p.data(), g.data(), m.data(), v.data(), count);
    EXPECT_EQ(p, expected) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(InstructionSet, Loops, ::testing::Values(Variant::kV2, Variant::kV3, Variant::kV4));

}  // namespace
}  // namespace trivium::runtime::cpu
