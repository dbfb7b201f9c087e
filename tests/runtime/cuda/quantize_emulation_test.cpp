// Casts to 8 bits, and products of them, against the CPU backend: every code and every scale is the same. Codes of
// columns lie transposed here, run by run.
#include <limits>

#include "tests/runtime/cuda/coded_calls.h"

namespace trivium::runtime::cuda {
namespace {

using program::Fp8;
using program::Fp8Operand;
using program::OpKind;

void expect_casts(Fp8Operand operand, std::int64_t runs, std::int64_t rows, std::int64_t columns,
                  const std::vector<double>& x, bool sums) {
  expect_casts_of(Fp8::kCurrent, operand, {runs, rows, columns}, x, sums);
}

Cast cast_by_cpu(Fp8Operand operand, std::int64_t runs, std::int64_t rows, std::int64_t columns, unsigned seed) {
  return cast_by_cpu_of(Fp8::kCurrent, operand, {runs, rows, columns}, seed);
}

void expect_product(EmulatedCall call, const Cast& first, const Cast& second) {
  expect_product_of(Fp8::kCurrent, std::move(call), first, second);
}

// Tiles are 128 rows of 64 columns: less than one, several with an end, runs of experts.
TEST(QuantizeEmulation, CastsWhatTheCpuCasts) {
  for (const Fp8Operand operand : {Fp8Operand::kInput, Fp8Operand::kGradient}) {
    expect_casts(operand, 1, 48, 32, uniform(48 * 32, 1), true);
    expect_casts(operand, 1, 272, 144, uniform(272 * 144, 1), true);
    std::vector<double> runs = uniform(3 * 144 * 80, 2);
    for (std::size_t i = 144 * 80; i < runs.size(); ++i) runs[i] *= i < 2 * 144 * 80 ? 1e-4 : 3e5;
    expect_casts(operand, 3, 144, 80, runs, true);
  }
}

// The largest decides: nothing but zeros, what the format's largest times a power of two is and what is just above it,
// numbers so small that their scale is the least, numbers that are none.
TEST(QuantizeEmulation, ScalesByTheLargestNumber) {
  for (const Fp8Operand operand : {Fp8Operand::kWeight, Fp8Operand::kGradient}) {
    expect_casts(operand, 1, 16, 16, std::vector<double>(256, 0), true);
    for (const double largest : {1.75, 1.7578125, 448.0, 1e-38, 3e38, 1e-40}) {
      std::vector<double> x = uniform(256, 4);
      for (double& each : x) each *= largest;
      x[77] = -largest;
      expect_casts(operand, 1, 16, 16, x, false);
    }
    std::vector<double> x = uniform(256, 5);
    x[3] = std::numeric_limits<double>::infinity(), x[100] = 300;
    expect_casts(operand, 1, 16, 16, x, false);
  }
}

/// The cast by a history of three sites, the first of which is its own; rows of this step and of the window.
void expect_delayed(Fp8Operand operand, std::int64_t runs, std::int64_t rows, const std::vector<double>& x,
                    double of_window, bool looks_first) {
  const auto columns = static_cast<std::int64_t>(x.size()) / runs / rows;
  EmulatedCall call = cast_of(Fp8::kDelayed, operand, {runs, rows, columns}, x);
  call.op.k = 3;
  call.values.looks_first = looks_first;
  call.with_out(2, Form::kWide, {0.125, 2, 3, of_window, 4, 5});
  call.raises = true;
  const auto wanted = call.on_cpu(DType::kBf16), got = call.on_emulation(DType::kBf16);
  EXPECT_EQ(got[0], wanted[0]);
  EXPECT_EQ(got[1], as_on_gpu(program::cast_layout(call.op, false), false, wanted[1]));
  EXPECT_EQ(got[2], wanted[2]);
  EXPECT_GT(wanted[2][0], 0.125);
}

TEST(DelayedCastEmulation, CastsWhatTheCpuCastsAndNotesTheLargest) {
  constexpr std::int64_t kRows = 288, kColumns = 144;
  for (const Fp8Operand operand : {Fp8Operand::kInput, Fp8Operand::kGradient}) {
    for (const bool looks_first : {false, true}) {
      std::vector<double> x = uniform(kRows * kColumns, 1);
      expect_delayed(operand, 1, kRows, x, 0.7, looks_first);
      expect_delayed(operand, 2, kRows / 2, x, 0.05, looks_first);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] *= i % 7 == 0 ? 3e5 : 1e-3;  // most of it small, some too large
      expect_delayed(operand, 1, kRows, x, 900, looks_first);
      expect_delayed(operand, 1, kRows, x, 0, looks_first);
      x[5] = std::numeric_limits<double>::infinity(), x[kColumns * 200] = -1e38;
      expect_delayed(operand, 1, kRows, x, 1e-30, looks_first);
    }
  }
}

TEST(DelayedCastEmulation, RecordsWhatTheCpuRecords) {
  constexpr std::int64_t kSites = 70, kSteps = 300;
  EmulatedCall call(OpKind::kRecordLargest, kSites, 1, kSteps);
  std::vector<double> history = uniform(kSites * (kSteps + 2), 4);
  for (double& each : history) each = std::abs(each);
  history[3] = std::numeric_limits<double>::infinity(), history[4] = 2;
  call.with_out(0, Form::kWide, history);
  for (const std::int64_t step : {0, 299, 300, 1234}) {
    call.values.step = step;
    const auto wanted = call.on_cpu(DType::kBf16)[0];
    EXPECT_EQ(call.on_emulation(DType::kBf16)[0], wanted);
    EXPECT_EQ(wanted[kSites + 4], 2);
    EXPECT_LT(wanted[kSites + 3], 1);
  }
}

TEST(CodedProductEmulation, MultipliesWhatCodesStandFor) {
  constexpr std::int64_t kM = 48, kN = 32, kK = 64;
  const Cast x = cast_by_cpu(Fp8Operand::kInput, 1, kM, kK, 1), w = cast_by_cpu(Fp8Operand::kWeight, 1, kK, kN, 2),
             dy = cast_by_cpu(Fp8Operand::kGradient, 1, kM, kN, 3);
  EmulatedCall forward(OpKind::kMatmul, kM, kN, kK), dgrad(OpKind::kMatmulDgrad, kM, kN, kK),
      wgrad(OpKind::kMatmulWgrad, kM, kN, kK);
  forward.with_in(2, Form::kTyped, uniform(kN, 4)).with_out(0, Form::kTyped, uniform(kM * kN, 5));
  expect_product(forward, x, w);
  expect_product(dgrad.with_out(0, Form::kTyped, uniform(kM * kK, 6)), dy, w);
  expect_product(wgrad.with_out(0, Form::kWide, uniform(kK * kN, 7)), x, dy);
}

// Two experts whose rows come from three ranks: six runs of rows, two of weights, whose scales lie 4 bytes apart.
TEST(CodedProductEmulation, MultipliesEveryExpertsRowsByItsWeight) {
  constexpr std::int64_t kRows = 32, kN = 64, kK = 48, kExperts = 2, kParts = 3, kRuns = kExperts * kParts;
  const Cast x = cast_by_cpu(Fp8Operand::kInput, kRuns, kRows, kK, 1),
             w = cast_by_cpu(Fp8Operand::kWeight, kExperts, kK, kN, 2),
             dy = cast_by_cpu(Fp8Operand::kGradient, kRuns, kRows, kN, 3);
  const auto call_of = [&](OpKind kind) {
    EmulatedCall call(kind, kRows * kParts, kN, kK);
    call.op.experts = kExperts, call.op.parts = kParts;
    return call;
  };
  EmulatedCall forward = call_of(OpKind::kExpertMatmul), dgrad = call_of(OpKind::kExpertMatmulDgrad),
               wgrad = call_of(OpKind::kExpertMatmulWgrad);
  forward.with_out(0, Form::kTyped, uniform(kRuns * kRows * kN, 4));
  expect_product(forward, x, w);
  dgrad.with_out(0, Form::kTyped, uniform(kRuns * kRows * kK, 5));
  expect_product(dgrad, dy, w);
  wgrad.with_out(0, Form::kWide, uniform(kExperts * kK * kN, 6));
  expect_product(wgrad, x, dy);
}

}  // namespace
}  // namespace trivium::runtime::cuda
