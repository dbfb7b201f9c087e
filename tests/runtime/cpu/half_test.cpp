// 16-bit operands: what is stored has 16 bits, what is summed fp32.
#include "runtime/reduction/half.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "runtime/cpu/kernels.h"
#include "tests/runtime/cpu/kernel_call.h"

namespace trivium::runtime::cpu {
namespace {

using program::DType;

std::uint16_t narrow(float value, DType type) {
  return type == DType::kBf16 ? reduction::bf16_of_float(value) : reduction::fp16_of_float(value);
}

float widen(std::uint16_t bits, DType type) {
  return type == DType::kBf16 ? reduction::float_of_bf16(bits) : reduction::float_of_fp16(bits);
}

std::vector<std::uint16_t> halves(const std::vector<double>& values, DType type) {
  std::vector<std::uint16_t> bits;
  for (const double x : values) bits.push_back(narrow(static_cast<float>(x), type));
  return bits;
}

std::vector<float> widened(const std::vector<std::uint16_t>& bits, DType type) {
  std::vector<float> values;
  for (const std::uint16_t b : bits) values.push_back(widen(b, type));
  return values;
}

/// A call whose operands are buffers of a kind, as an executor's are.
class HalfCall {
 public:
  HalfCall(OpKind kind, std::int64_t m, std::int64_t n, std::int64_t k, DType type) : call_(kind, m, n, k) {
    call_.op.dtype = type;
    call_.arguments.kind = &kind_;
  }
  template <class T>
  HalfCall& in(std::size_t i, const std::vector<T>& x, DType type) {
    call_.in(i, x);
    call_.op.in[i] = buffer(x.size(), type);
    return *this;
  }
  template <class T>
  HalfCall& out(std::size_t i, std::vector<T>& y, DType type) {
    call_.out(i, y);
    call_.op.out[i] = buffer(y.size(), type);
    return *this;
  }
  void run() { find_kernel(call_.op.kind, call_.op.dtype)(call_.arguments); }
  Call& call() { return call_; }

 private:
  int buffer(std::size_t elements, DType type) {
    kind_.buffers.push_back({"operand", program::Space::kWorkspace, type, static_cast<std::int64_t>(elements), 0});
    return static_cast<int>(kind_.buffers.size()) - 1;
  }
  program::ChunkTemplate kind_;
  Call call_;
};

// A unit of bf16 above 1 is 2^-7. 2^-8 is half of it, and 2^-40 beyond what a float tells from it: rounding by way of a
// float would take both sides of the middle for the middle itself.
TEST(Bf16OfDouble, RoundsOnce) {
  const auto rounded = [](double value) {
    EXPECT_EQ(reduction::bf16_of_double(-value), reduction::bf16_of_double(value) | 0x8000u);
    return double{reduction::float_of_bf16(reduction::bf16_of_double(value))};
  };
  EXPECT_EQ(rounded(1 + 0x1p-8), 1);
  EXPECT_EQ(rounded(1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);
  EXPECT_EQ(rounded(1 + 0x3p-8), 1 + 0x1p-6);
  EXPECT_EQ(rounded(1 + 0x3p-8 - 0x1p-40), 1 + 0x1p-7);
  EXPECT_EQ(rounded(0x1p-133), 0x1p-133);  // bf16's smallest
  EXPECT_EQ(rounded(0x1p-134), 0);
  EXPECT_EQ(rounded(0x1.0000000001p-134), 0x1p-133);
  EXPECT_EQ(rounded(0x1p-300), 0);
  EXPECT_EQ(rounded(0x1.fep127), 0x1.fep127);  // its largest
  EXPECT_EQ(rounded(0x1p200), std::numeric_limits<double>::infinity());
  EXPECT_EQ(rounded(std::numeric_limits<double>::infinity()), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(rounded(std::numeric_limits<double>::quiet_NaN())));
}

class HalfKernels : public testing::TestWithParam<DType> {};

// The products of 16-bit numbers are exact in fp32, so what the fp32 kernel computes of them is what is rounded.
TEST_P(HalfKernels, AProductIsTheFp32OneRoundedOnce) {
  const DType type = GetParam();
  const auto x = halves(numbers(5 * 7, 1), type), w = halves(numbers(7 * 3, 2), type);
  const std::vector<float> wide_x = widened(x, type), wide_w = widened(w, type);
  std::vector<float> exact(15);
  Call wide(OpKind::kMatmul, 5, 3, 7);
  wide.in(0, wide_x).in(1, wide_w).out(0, exact).run<float>();
  std::vector<std::uint16_t> y(15);
  HalfCall call(OpKind::kMatmul, 5, 3, 7, type);
  call.in(0, x, type).in(1, w, type).out(0, y, type).run();
  int rounded = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(y[i], narrow(exact[i], type)) << i;
    rounded += widen(y[i], type) != exact[i] ? 1 : 0;
  }
  EXPECT_GT(rounded, 0);  // else nothing would tell 16 bits from 32
}

// 1 + 600 terms of 2^-12: each is less than half a unit of 1 in either type, so a 16-bit sum would stay at 1.
TEST_P(HalfKernels, WeightGradientsAddUpInFp32) {
  const DType type = GetParam();
  const std::vector<double> ones(600, 1.0), small(600, 0x1.0p-12);
  std::vector<float> dw{1};
  HalfCall call(OpKind::kMatmulWgrad, 600, 1, 1, type);
  call.in(0, halves(ones, type), type).in(1, halves(small, type), type).out(0, dw, DType::kFp32).run();
  EXPECT_EQ(dw[0], 1 + 600 * 0x1.0p-12F);
}

// An operand that is read and written at one place, and one that is added to.
TEST_P(HalfKernels, SumsInPlaceAreRoundedToNearest) {
  const DType type = GetParam();
  const auto x = halves(numbers(40, 3), type);
  auto y = halves(numbers(40, 4), type);
  const auto before = y;
  HalfCall call(OpKind::kAdd, 40, 1, 0, type);
  call.call().op.elements = 40;
  call.in(0, x, type).out(0, y, type).run();
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(y[i], narrow(widen(before[i], type) + widen(x[i], type), type)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Type, HalfKernels, testing::Values(DType::kBf16, DType::kFp16),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

/// One parameter of four elements in fp16, its gradient in fp32 and three arrays of state.
struct HalfParameter {
  HalfParameter() {
    program::Parameter p;
    p.local_rows = 1, p.local_columns = 4;
    p.gradient = 0;
    kind.parameters = {p};
    kind.buckets.push_back({.begin = 0, .elements = 4, .shard = 4});
    kind.buffers.push_back({"gradient", program::Space::kGradient, DType::kFp32, 4, 0});
    state[8] = state[9] = state[10] = state[11] = 1;  // the fp32 copies
    for (auto& p16 : parameters) p16 = reduction::fp16_of_float(1);
  }
  void step(double norm) {
    Call call(OpKind::kAdamW, 0, 0);
    call.op.dtype = DType::kFp16;
    call.op.bucket = 0;
    call.arguments.kind = &kind;
    call.arguments.optimizer = &optimizer;
    call.values.learning_rate = 0x1.0p-14;
    call.values.loss_scale = 1024;
    const std::vector<double> pair{norm * norm, 0};
    call.in(0, pair);
    const auto base = [&](program::Space space, void* memory) {
      call.arguments.chunk_base[static_cast<std::size_t>(space)] = static_cast<std::byte*>(memory);
    };
    base(program::Space::kParameter, parameters.data());
    base(program::Space::kGradient, gradients.data());
    base(program::Space::kOptimizer, state.data());
    find_kernel(call.op.kind, call.op.dtype)(call.arguments);
  }
  program::ChunkTemplate kind;
  program::Optimizer optimizer;
  std::array<std::uint16_t, 4> parameters{};
  std::vector<float> gradients = std::vector<float>(4, 512.0F);
  std::array<float, 12> state{};
};

// Adam's first step is the learning rate, 2^-14: below half an fp16 unit under 1 (2^-12), so only the copy moves. The
// gradient 512 of the scaled loss is 0.5: its first moment is 0.1 * 0.5.
TEST(AdamWInHalf, StepsTheFp32CopyAndTakesTheScaleOff) {
  HalfParameter p;
  p.optimizer.clip_norm = 0;
  p.step(1024);
  EXPECT_EQ(p.parameters[0], reduction::fp16_of_float(1));
  EXPECT_NEAR(p.state[8], 1 - 0x1.0p-14, 1e-7);
  EXPECT_NEAR(p.state[0], 0.05, 1e-8);
  for (int i = 0; i < 7; ++i) p.step(1024);
  EXPECT_LT(reduction::float_of_fp16(p.parameters[0]), 1.0F);  // eight of them are more than half a unit
}

TEST(AdamWInHalf, LeavesAStepOutWhoseNormIsNotFinite) {
  HalfParameter p;
  const auto state = p.state;
  const auto parameters = p.parameters;
  p.step(std::numeric_limits<double>::infinity());
  p.step(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(p.state, state);
  EXPECT_EQ(p.parameters, parameters);
}

}  // namespace
}  // namespace trivium::runtime::cpu
