// The shared arithmetic: rounding of 16-bit floats, integers, special values, slices.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/reduction/half.h"
#include "runtime/reduction/reduce.h"

namespace trivium::runtime::reduction {
namespace {

using program::DType;
using program::Reduction;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class Number>
Number reduced(std::vector<Number> values, DType type, Reduction how) {
  std::vector<const std::byte*> parts;
  for (const Number& value : values) parts.push_back(reinterpret_cast<const std::byte*>(&value));
  Number result{};
  std::byte* const place = reinterpret_cast<std::byte*>(&result);
  reduce_in_order(parts, std::span(&place, 1), 1, type, how);
  return result;
}

TEST(Bf16, RoundsToNearestWithTiesToEven) {
  EXPECT_EQ(bf16_of_float(1.0f), 0x3f80);
  EXPECT_EQ(bf16_of_float(257.0f), 0x4380);   // half-way between 256 (even) and 258
  EXPECT_EQ(bf16_of_float(259.0f), 0x4382);   // half-way between 258 and 260 (even)
  EXPECT_EQ(bf16_of_float(257.01f), 0x4381);  // nearer to 258
  EXPECT_EQ(bf16_of_float(3.4e38f), 0x7f80);  // above the middle of the largest bf16 (3.39e38) and 2^128: infinity
  EXPECT_EQ(bf16_of_float(-kInfinity), 0xff80);
  EXPECT_TRUE(std::isnan(float_of_bf16(bf16_of_float(std::bit_cast<float>(0x7fffffffu)))));
}

TEST(Fp16, RoundsToNearestWithTiesToEven) {
  EXPECT_EQ(fp16_of_float(1.0f), 0x3c00);
  EXPECT_EQ(fp16_of_float(2049.0f), 0x6800);   // half-way between 2048 (even) and 2050
  EXPECT_EQ(fp16_of_float(2051.0f), 0x6802);   // half-way between 2050 and 2052 (even)
  EXPECT_EQ(fp16_of_float(65504.0f), 0x7bff);  // the largest
  EXPECT_EQ(fp16_of_float(65519.0f), 0x7bff);  // below the middle of 65504 and 65536
  EXPECT_EQ(fp16_of_float(65520.0f), 0x7c00);  // the middle: to even, which is infinity
  EXPECT_EQ(fp16_of_float(1e30f), 0x7c00);
  EXPECT_EQ(fp16_of_float(-0.0f), 0x8000);
  EXPECT_EQ(fp16_of_float(std::ldexp(1.0f, -24)), 0x0001);  // the smallest subnormal
  EXPECT_EQ(fp16_of_float(std::ldexp(1.0f, -25)), 0x0000);  // half of it: to even
  EXPECT_EQ(fp16_of_float(std::ldexp(3.0f, -25)), 0x0002);  // one and a half: to even
  EXPECT_TRUE(std::isnan(float_of_fp16(fp16_of_float(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Fp16, WideningAndNarrowingGivesBackEveryValue) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float wide = float_of_fp16(half);
    if (!std::isnan(wide)) {
      ASSERT_EQ(fp16_of_float(wide), half);
    }
  }
  EXPECT_EQ(float_of_fp16(0x3555), 1365.0f / 4096.0f);  // (1 + 341/1024) / 4
  EXPECT_EQ(float_of_fp16(0x03ff), std::ldexp(1023.0f, -24));
  EXPECT_EQ(float_of_fp16(0xfc00), -kInfinity);
}

TEST(ReduceInOrder, IntegersWrap) {
  const std::int32_t largest = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(reduced<std::int32_t>({largest, 1}, DType::kInt32, Reduction::kSum),
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(reduced<std::int32_t>({-5, -3}, DType::kInt32, Reduction::kMax), -3);
  EXPECT_EQ(reduced<std::uint8_t>({200, 100}, DType::kUint8, Reduction::kSum), 44);  // 300 - 256
  EXPECT_EQ(reduced<std::uint8_t>({3, 250, 100}, DType::kUint8, Reduction::kMax), 250);
}

TEST(ReduceInOrder, ANotANumberAnywhereMakesTheMaximumOne) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(reduced<float>({nan, 1, 2}, DType::kFp32, Reduction::kMax)));
  EXPECT_TRUE(std::isnan(reduced<float>({1, 2, nan}, DType::kFp32, Reduction::kMax)));
}

TEST(ReduceInOrder, PairsAddExactly) {
  // 2^60 + 1 - 2^60 = 1, which plain doubles lose; the low parts 2^-60 come along.
  using Pair = std::array<double, 2>;
  const double large = std::ldexp(1.0, 60), tiny = std::ldexp(1.0, -60);
  const Pair sum = reduced<Pair>({{large, 0.0}, {1.0, tiny}, {-large, 0.0}}, DType::kFp64, Reduction::kPairSum);
  EXPECT_EQ(sum[0], 1.0);
  EXPECT_EQ(sum[1], 0.0);  // 1 + 2^-60 is already rounded to 1 in the low part next to 2^60
  const Pair small = reduced<Pair>({{1.0, 0.0}, {tiny, 0.0}}, DType::kFp64, Reduction::kPairSum);
  EXPECT_EQ(small[0], 1.0);
  EXPECT_EQ(small[1], tiny);
}

TEST(ReduceInOrder, AnyLengthMayBeWrittenOverAPart) {
  for (const std::size_t count : {1u, 511u, 512u, 513u, 2000u}) {
    std::vector<float> a(count, 1.0f), b(count, 2.0f), guard(1, 7.0f);
    const std::array parts{reinterpret_cast<const std::byte*>(a.data()), reinterpret_cast<const std::byte*>(b.data())};
    const std::array results{reinterpret_cast<std::byte*>(b.data()), reinterpret_cast<std::byte*>(a.data())};
    reduce_in_order(parts, results, static_cast<std::int64_t>(count), DType::kFp32, Reduction::kSum);
    EXPECT_EQ(a, std::vector<float>(count, 3.0f));
    EXPECT_EQ(b, a);
  }
}

TEST(SliceOf, SlicesFollowOneAnotherAndCoverAll) {
  for (const std::int64_t count : {0, 1, 63, 64, 65, 1000, 100000}) {
    for (const int members : {1, 2, 3, 8}) {
      std::int64_t end = 0;
      for (int index = 0; index < members; ++index) {
        const Slice slice = slice_of(count, members, index);
        EXPECT_EQ(slice.begin, end);
        end = slice.end;
      }
      EXPECT_EQ(end, count);
    }
  }
  EXPECT_EQ(slice_of(1000, 3, 1).begin, 384);  // 1000 / 3 = 334, up to 6 grains of 64
}

}  // namespace
}  // namespace trivium::runtime::reduction
