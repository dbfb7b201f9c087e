// Double-double arithmetic: exact sums and products, and sums that do not depend on how they are shared out.

#include "runtime/cpu/double_double.h"

#include "tests/runtime/cpu/kernel_call.h"

namespace trivium::runtime::cpu {
namespace {

// 1 + 2^-60 does not fit a double: the sum rounds to 1 and the rest is 2^-60.
TEST(DoubleDouble, TwoSumKeepsWhatRoundingDrops) {
  const DoubleDouble sum = two_sum(0x1p-60, 1.0);
  EXPECT_EQ(sum.hi, 1.0);
  EXPECT_EQ(sum.lo, 0x1p-60);
}

// (1 + 2^-30)^2 = 1 + 2^-29 + 2^-60.
TEST(DoubleDouble, TwoProductKeepsWhatRoundingDrops) {
  const DoubleDouble product = two_product(1 + 0x1p-30, 1 + 0x1p-30);
  EXPECT_EQ(product.hi, 1 + 0x1p-29);
  EXPECT_EQ(product.lo, 0x1p-60);
}

// 2^4 terms of 2^-60 are 2^-56 together. Each alone, and all of them, are below half a unit of 1 (2^-53), so a double
// would have stayed at 1 and lost them.
TEST(DoubleDouble, AdditionCarriesBothParts) {
  DoubleDouble sum{1, 0};
  for (int i = 0; i < 16; ++i) sum = sum + DoubleDouble{0x1p-60, 0};
  EXPECT_EQ(sum.hi, 1.0);
  EXPECT_EQ(sum.lo, 0x1p-56);
}

TEST(DoubleDouble, TheRoundedSumOfSquaresDoesNotDependOnTheSplit) {
  const std::vector<double> x = numbers(100000, 1);
  const auto part = [&](std::size_t begin, std::size_t end) {
    DoubleDouble sum;
    for (std::size_t i = begin; i < end; ++i) sum = sum + exact_square(x[i]);
    return sum;
  };
  const double whole = part(0, x.size()).rounded();
  for (const std::size_t parts : {2, 3, 7, 64, 1000}) {
    DoubleDouble sum;
    for (std::size_t p = 0; p < parts; ++p) sum = sum + part(p * x.size() / parts, (p + 1) * x.size() / parts);
    EXPECT_EQ(sum.rounded(), whole) << parts << " parts";
  }
}

}  // namespace
}  // namespace trivium::runtime::cpu
