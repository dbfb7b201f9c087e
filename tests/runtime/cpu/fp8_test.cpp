// Numbers in 8 bits against a search through all that there are, and products of them against products of what they
// stand for.
#include "runtime/reduction/fp8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "program/ir/fp8_layout.h"
#include "tests/runtime/cpu/kernel_call.h"

namespace trivium::runtime::cpu {
namespace {

using program::Fp8;
using program::Fp8Layout;
using program::Fp8Operand;
using reduction::float_of_fp8;
using reduction::format_of;
using reduction::fp8_of_float;
using reduction::Fp8Type;

/// What a code stands for, from the formats' definition (OCP 8-bit Floating Point Specification, 2023, table 1).
double meaning(int code, Fp8Type type) {
  const int mantissa_bits = type == Fp8Type::kE4M3 ? 3 : 2, bias = type == Fp8Type::kE4M3 ? 7 : 15;
  const double sign = code >= 128 ? -1 : 1;
  const int exponent = code % 128 >> mantissa_bits, mantissa = code % (1 << mantissa_bits);
  const double fraction = mantissa / std::pow(2.0, mantissa_bits);
  if (exponent == 0) return sign * fraction * std::pow(2.0, 1 - bias);
  return sign * (1 + fraction) * std::pow(2.0, exponent - bias);
}

/// Codes of finite numbers: of E4M3 all but the last, of E5M2 all but those of the last exponent.
int finite_codes(Fp8Type type) { return type == Fp8Type::kE4M3 ? 0x7f : 0x7c; }

/// The nearest number, of two equally near ones the one whose code is even; beyond the largest the largest.
int nearest(double x, Fp8Type type) {
  int best = 0;
  for (int code = 1; code < finite_codes(type); ++code) {
    const double far = std::abs(meaning(code, type) - std::abs(x)),
                 before = std::abs(meaning(best, type) - std::abs(x));
    if (far < before || (far == before && code % 2 == 0)) best = code;
  }
  return best + (std::signbit(x) ? 128 : 0);
}

class Fp8Numbers : public testing::TestWithParam<Fp8Type> {};

TEST_P(Fp8Numbers, EveryCodeIsRead) {
  for (int sign = 0; sign < 256; sign += 128) {
    for (int code = 0; code < finite_codes(GetParam()); ++code) {
      EXPECT_EQ(float_of_fp8(static_cast<std::uint8_t>(sign + code), GetParam()), meaning(sign + code, GetParam()));
    }
  }
  EXPECT_TRUE(std::isnan(float_of_fp8(0x7f, GetParam())));
}

TEST_P(Fp8Numbers, EveryCodeComesBack) {
  for (int code = 0; code < finite_codes(GetParam()); ++code) {
    const auto value = static_cast<float>(meaning(code, GetParam()));
    EXPECT_EQ(fp8_of_float(value, GetParam()), code);
    EXPECT_EQ(fp8_of_float(-value, GetParam()), code + 128);
  }
}

TEST_P(Fp8Numbers, RoundsToTheNearestAndToEvenBetweenTwo) {
  const Fp8Type type = GetParam();
  for (int code = 0; code + 1 < finite_codes(type); ++code) {
    const auto low = static_cast<float>(meaning(code, type)), high = static_cast<float>(meaning(code + 1, type));
    const float between = (low + high) / 2;
    for (const float x : {between, std::nextafter(between, 0.F), std::nextafter(between, high)}) {
      EXPECT_EQ(fp8_of_float(x, type), nearest(x, type)) << x;
      EXPECT_EQ(fp8_of_float(-x, type), nearest(-x, type)) << -x;
    }
  }
}

TEST_P(Fp8Numbers, SaturatesAndKeepsNaN) {
  const int largest = finite_codes(GetParam()) - 1;
  EXPECT_EQ(format_of(GetParam()).largest, meaning(largest, GetParam()));
  EXPECT_EQ(fp8_of_float(1e9F, GetParam()), largest);
  EXPECT_EQ(fp8_of_float(-1e9F, GetParam()), largest + 128);
  EXPECT_TRUE(std::isnan(float_of_fp8(fp8_of_float(std::nanf(""), GetParam()), GetParam())));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(float_of_fp8(fp8_of_float(infinity, GetParam()), GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Type, Fp8Numbers, testing::Values(Fp8Type::kE4M3, Fp8Type::kE5M2),
                         [](const auto& instance) { return instance.param == Fp8Type::kE4M3 ? "E4M3" : "E5M2"; });

/// What kQuantize has made of x, element by element, from the codes and scales that lie in the buffer.
std::vector<double> read(const std::vector<std::uint8_t>& bytes, const Fp8Layout& layout, Fp8Type type) {
  std::vector<double> x;
  for (std::int64_t r = 0; r < layout.rows(); ++r) {
    for (std::int64_t c = 0; c < layout.columns; ++c) {
      const std::int64_t run = r / layout.run_rows, row = r % layout.run_rows / layout.block_rows;
      const std::int64_t block =
          (run * layout.block_rows_count() + row) * layout.block_columns_count() + c / layout.block_columns;
      const std::uint8_t* scale = bytes.data() + layout.scales_begin() + block * layout.scale_bytes;
      float factor = 0;
      if (layout.scale_bytes == 4) std::memcpy(&factor, scale, sizeof factor);
      if (layout.scale_bytes == 1) factor = std::ldexp(1.F, *scale - 127);
      x.push_back(meaning(bytes[static_cast<std::size_t>(r * layout.columns + c)], type) * factor);
    }
  }
  return x;
}

struct Cast {
  Fp8 recipe;
  Fp8Operand operand;
  std::int32_t runs = 1;
};

std::vector<std::uint8_t> cast(const std::vector<double>& x, std::int64_t m, std::int64_t n, const Cast& how,
                               bool along_rows) {
  Call call(OpKind::kQuantize, m, n);
  call.op.fp8 = how.recipe, call.op.operand = how.operand, call.op.parts = how.runs;
  std::vector<std::uint8_t> y(static_cast<std::size_t>(program::cast_layout(call.op, along_rows).bytes()));
  call.in(0, x).out(along_rows ? 0 : 1, y).run<double>();
  return y;
}

// Largest of a block between 224 and 448 after scaling (E5M2: 28,672 and 57,344), all within half a unit.
TEST(Quantize, EveryNumberIsWithinHalfAUnitOfItsBlock) {
  const std::int64_t m = 70, n = 260;
  std::vector<double> x = numbers(m * n, 3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] *= std::pow(2.0, static_cast<double>(i % 23) - 11);
  for (const Cast how : {Cast{Fp8::kCurrent, Fp8Operand::kInput}, Cast{Fp8::kCurrent, Fp8Operand::kGradient},
                         Cast{Fp8::kBlock, Fp8Operand::kInput}, Cast{Fp8::kBlock, Fp8Operand::kWeight, 2},
                         Cast{Fp8::kMxfp8, Fp8Operand::kWeight}, Cast{Fp8::kMxfp8, Fp8Operand::kGradient, 7}}) {
    for (const bool along_rows : {true, false}) {
      SCOPED_TRACE(testing::Message() << name_of(how.recipe) << " " << along_rows);
      const bool wide = how.recipe == Fp8::kCurrent && how.operand == Fp8Operand::kGradient;
      const Fp8Type type = wide ? Fp8Type::kE5M2 : Fp8Type::kE4M3;
      const Fp8Layout layout = program::fp8_layout(how.recipe, how.operand, along_rows, how.runs, m, n);
      const std::vector<double> y = read(cast(x, m, n, how, along_rows), layout, type);
      const double half_unit = wide ? 0.125 : 0.0625, least = std::pow(2.0, wide ? -16 - 15 : -9 - 8);
      for (std::size_t i = 0; i < x.size(); ++i) {
        // The largest number of x is below 2^11: a block's unit of subnormals is at most `least` of it.
        ASSERT_LE(std::abs(y[i] - x[i]), std::max(half_unit * std::abs(x[i]), least * 2048 * 2)) << i;
      }
    }
  }
}

// 300 = 1.17 x 2^8 and 500 = 1.95 x 2^8: within 448 the first has a scale of 1, the second of 2.
TEST(Quantize, ScalesAreTheSmallestPowersOfTwoThatFit) {
  const Fp8Layout layout = program::fp8_layout(Fp8::kMxfp8, Fp8Operand::kInput, true, 1, 2, 32);
  std::vector<double> x = zeros(64);
  x[3] = 300, x[32] = -500;
  const auto bytes = cast(x, 2, 32, {Fp8::kMxfp8, Fp8Operand::kInput}, true);
  EXPECT_EQ(bytes[static_cast<std::size_t>(layout.scales_begin())], 127);
  EXPECT_EQ(bytes[static_cast<std::size_t>(layout.scales_begin()) + 1], 128);
  EXPECT_EQ(read(bytes, layout, Fp8Type::kE4M3)[3], 288);    // units of 32: 288 or 320
  EXPECT_EQ(read(bytes, layout, Fp8Type::kE4M3)[32], -512);  // 500 / 2 = 250: units of 16
}

TEST(Quantize, AddsTheSumsOfColumnsToTheBias) {
  const std::vector<double> x = numbers(5 * 16, 8);
  std::vector<double> dbias = numbers(16, 9), expected = dbias;
  for (std::size_t i = 0; i < x.size(); ++i) expected[i % 16] += x[i];
  Call call(OpKind::kQuantize, 5, 16);
  call.op.fp8 = Fp8::kCurrent, call.op.operand = Fp8Operand::kGradient;
  call.in(0, x).out(2, dbias).run<double>();
  expect_near(dbias, expected, kRounding);
}

TEST(Quantize, AProductIsThatOfTheNumbersThatTheCodesStandFor) {
  const std::int64_t m = 24, n = 48, k = 160;
  const std::vector<double> x = numbers(m * k, 1), w = numbers(k * n, 2), dy = numbers(m * n, 4);
  for (const Fp8 recipe : {Fp8::kCurrent, Fp8::kBlock, Fp8::kMxfp8}) {
    for (const OpKind kind : {OpKind::kMatmul, OpKind::kMatmulDgrad, OpKind::kMatmulWgrad}) {
      SCOPED_TRACE(testing::Message() << name_of(recipe) << " " << name_of(kind));
      Call call(kind, m, n, k);
      call.op.fp8 = recipe, call.op.dtype = program::DType::kFp64;
      const std::vector<double>* values[] = {kind == OpKind::kMatmulDgrad ? &dy : &x,
                                             kind == OpKind::kMatmulWgrad ? &dy : &w};
      std::vector<double> meant[2];
      std::vector<std::uint8_t> bytes[2];
      for (int i = 0; i < 2; ++i) {
        const Fp8Layout layout = program::operand_layout(call.op, i);
        const Fp8Operand what = program::operand_of(call.op, i);
        const bool along_rows = layout.block_rows == 1 || (what == Fp8Operand::kWeight && kind == OpKind::kMatmulDgrad);
        bytes[i] = cast(*values[i], layout.rows(), layout.columns, {recipe, what}, along_rows);
        const bool wide = what == Fp8Operand::kGradient && recipe == Fp8::kCurrent;
        meant[i] = read(bytes[i], layout, wide ? Fp8Type::kE5M2 : Fp8Type::kE4M3);
        call.in(static_cast<std::size_t>(i), bytes[i]);
      }
      std::vector<double> got = zeros(m * k + k * n + m * n), expected = got;
      call.out(0, got);
      kernel_of(call.op, call.op.dtype)(call.arguments);
      Call plain(kind, m, n, k);
      plain.in(0, meant[0]).in(1, meant[1]).out(0, expected).run<double>();
      EXPECT_EQ(got, expected);
    }
  }
}

/// A cast of a row of 16 by a history of two sites, of which this is the second.
struct DelayedCast {
  std::vector<double> x = zeros(16);
  std::vector<float> history;  // of this step, of the window
  std::vector<double> run(bool looks_first = false) {
    Call call(OpKind::kQuantize, 1, 16, 2);
    call.op.fp8 = Fp8::kDelayed;
    call.values.looks_first = looks_first;
    const Fp8Layout layout = program::cast_layout(call.op, true);
    std::vector<std::uint8_t> y(static_cast<std::size_t>(layout.bytes()));
    call.in(0, x).out(0, y);
    call.arguments.in[1] = reinterpret_cast<std::byte*>(history.data() + 1);
    call.run<double>();
    return read(y, layout, Fp8Type::kE4M3);
  }
};

// The window's largest, 300, fits with a scale of 1. 1000 does not: it saturates at 448 and is noted; by itself it
// would have a scale of 4, units of 64 from 512 on: 960 or 1,024, the even of which is the latter.
TEST(DelayedScaling, CastsByTheLargestOfStepsBeforeAndNotesTheOwn) {
  DelayedCast cast{.history = {7, 500, 8, 300}};
  cast.x[0] = 3.5, cast.x[5] = -1000;
  std::vector<double> y = cast.run();
  EXPECT_EQ(y[0], 3.5);
  EXPECT_EQ(y[5], -448);
  EXPECT_EQ(cast.history, (std::vector<float>{7, 1000, 8, 300}));
  y = cast.run(true);
  EXPECT_EQ(y[0], 3.5);
  EXPECT_EQ(y[5], -1024);
  cast.x[5] = 2;
  y = cast.run();
  EXPECT_EQ(y[5], 2);
  EXPECT_EQ(cast.history, (std::vector<float>{7, 1000, 8, 300}));  // the step's largest stays
}

// What was always 0 has a scale of 1. Numbers that overflow fp32 when they are scaled saturate; infinity is none.
TEST(DelayedScaling, SaturatesWhatNothingForetold) {
  DelayedCast cast{.history = {0, 0, 0, 0}};
  cast.x[1] = 449, cast.x[2] = 0x1p-9, cast.x[3] = 0x1p-11;
  std::vector<double> y = cast.run();
  EXPECT_EQ(y[1], 448);
  EXPECT_EQ(y[2], 0x1p-9);
  EXPECT_EQ(y[3], 0);
  cast.history[3] = 0x1p-100F;  // a scale of 2^-108
  cast.x[1] = -1e38, cast.x[2] = std::numeric_limits<double>::infinity();
  y = cast.run();
  EXPECT_EQ(y[1], -448 * 0x1p-108);
  EXPECT_EQ(y[2], meaning(0x7f, Fp8Type::kE4M3) * 0x1p-108);  // the code of what is no number
  EXPECT_EQ(cast.history[1], std::numeric_limits<float>::infinity());
}

// Two sites over a window of three steps, the fourth step in the place of the first. Infinity leaves no trace.
TEST(DelayedScaling, AWindowForgetsWhatIsOlder) {
  std::vector<float> history(2 * 5);
  const float steps[5][2] = {{4, 1}, {2, 9}, {1, std::numeric_limits<float>::infinity()}, {3, 0}, {0.5F, 2}};
  const float of_window[5][2] = {{4, 1}, {4, 9}, {4, 9}, {3, 9}, {3, 2}};
  for (int step = 0; step < 5; ++step) {
    Call call(OpKind::kRecordLargest, 2, 1, 3);
    call.values.step = step;
    history[0] = steps[step][0], history[1] = steps[step][1];
    call.out(0, history).run<float>();
    EXPECT_EQ(history[2], of_window[step][0]) << step;
    EXPECT_EQ(history[3], of_window[step][1]) << step;
  }
}

}  // namespace
}  // namespace trivium::runtime::cpu
