// Casts with a scale for every block, and products of them, against the CPU backend: every code and every scale is the
// same, and so are products, whether a device has such (of 128 numbers a scale, or of 32) or multiplies what codes
// stand for.
#include <limits>

#include "tests/runtime/cuda/coded_calls.h"

namespace trivium::runtime::cuda {
namespace {

using program::Fp8;
using program::Fp8Operand;
using program::OpKind;

constexpr Fp8 kRecipes[] = {Fp8::kBlock, Fp8::kMxfp8};
constexpr Fp8Operand kOperands[] = {Fp8Operand::kInput, Fp8Operand::kWeight, Fp8Operand::kGradient};

// Tiles are 128 rows of 128 columns: less than one, several with an end of a block's part, runs of experts.
TEST(QuantizeBlocksEmulation, CastsWhatTheCpuCasts) {
  for (const Fp8 recipe : kRecipes) {
    for (const Fp8Operand operand : kOperands) {
      for (const RunSizes& s : {RunSizes{1, 48, 32}, {1, 272, 160}, {3, 144, 288}}) {
        std::vector<double> x = uniform(s.runs * s.rows * s.columns, 1);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::ldexp(x[i], static_cast<int>(i / 16 % 7) - 3);
        expect_casts_of(recipe, operand, s, x, true);
      }
    }
  }
}

// One block after the other: nothing but zeros, what the format's largest times a power of two is and what is just
// above it, numbers so small that their scale is the least, and so large that it is not, numbers that are none.
TEST(QuantizeBlocksEmulation, ScalesByTheLargestNumber) {
  constexpr std::int64_t kRows = 128, kColumns = 128;
  for (const Fp8 recipe : kRecipes) {
    for (const Fp8Operand operand : kOperands) {
      std::vector<double> x = uniform(kRows * kColumns, 4);
      for (std::size_t i = 0; i < 32 * kColumns; ++i) x[i] = 0;
      const double largest[] = {1.75, 1.7578125, 448.0, 1e-38, 3e38, 1e-40, std::numeric_limits<double>::infinity()};
      for (std::size_t row = 0; row < std::size(largest); ++row) {
        for (std::size_t i = 0; i < kColumns; ++i) {
          double& each = x[(40 + row) * kColumns + i];
          each = i == 77 ? -largest[row] : std::isinf(largest[row]) ? each : each * largest[row];
        }
      }
      expect_casts_of(recipe, operand, {1, kRows, kColumns}, x, false);
    }
  }
}

/// Products of three kinds, of an expert each where there are several, on a device that has such products.
void expect_products(Fp8 recipe, ScaledProducts scaled, const RunSizes& rows, std::int64_t n, int experts) {
  SCOPED_TRACE(name_of(recipe));
  const std::int64_t k = rows.columns, runs = rows.runs, tokens = rows.rows * runs;
  const Cast x = cast_by_cpu_of(recipe, Fp8Operand::kInput, rows, 1),
             w = cast_by_cpu_of(recipe, Fp8Operand::kWeight, {std::max(experts, 1), k, n}, 2),
             dy = cast_by_cpu_of(recipe, Fp8Operand::kGradient, {runs, rows.rows, n}, 3);
  const auto call_of = [&](OpKind dense, OpKind of_experts) {
    EmulatedCall call(experts > 0 ? of_experts : dense, experts > 0 ? tokens / experts : tokens, n, k);
    call.op.experts = experts;
    if (experts > 0) call.op.parts = static_cast<std::int32_t>(runs / experts);
    call.scaled = scaled;
    return call;
  };
  EmulatedCall forward = call_of(OpKind::kMatmul, OpKind::kExpertMatmul),
               dgrad = call_of(OpKind::kMatmulDgrad, OpKind::kExpertMatmulDgrad),
               wgrad = call_of(OpKind::kMatmulWgrad, OpKind::kExpertMatmulWgrad);
  if (experts == 0) forward.with_in(2, Form::kTyped, uniform(n, 4));
  expect_product_of(recipe, forward.with_out(0, Form::kTyped, uniform(tokens * n, 5)), x, w);
  expect_product_of(recipe, dgrad.with_out(0, Form::kTyped, uniform(tokens * k, 6)), dy, w);
  expect_product_of(recipe, wgrad.with_out(0, Form::kWide, uniform(std::max(experts, 1) * k * n, 7)), x, dy);
}

// Sums over 144 to 288 numbers: whole blocks and what is left of one, squares whose rows are padded.
TEST(CodedBlocksEmulation, MultipliesWhatCodesStandFor) {
  for (const Fp8 recipe : kRecipes) {
    expect_products(recipe, ScaledProducts::kNone, {1, 144, 288}, 160, 0);
    expect_products(recipe, ScaledProducts::kBlocks128, {1, 144, 288}, 160, 0);
    expect_products(recipe, ScaledProducts::kBlocks32, {1, 160, 288}, 160, 0);
  }
}

// Two experts whose rows come from two ranks.
TEST(CodedBlocksEmulation, MultipliesEveryExpertsRowsByItsWeight) {
  for (const Fp8 recipe : kRecipes) {
    expect_products(recipe, ScaledProducts::kNone, {4, 48, 160}, 192, 2);
    expect_products(recipe, ScaledProducts::kBlocks128, {4, 48, 160}, 192, 2);
    expect_products(recipe, ScaledProducts::kBlocks32, {4, 64, 160}, 192, 2);
  }
}

}  // namespace
}  // namespace trivium::runtime::cuda
