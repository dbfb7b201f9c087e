#include "program/ir/fp8_layout.h"

#include <algorithm>

namespace trivium::program {
namespace {

constexpr std::int64_t kBlock = 128;      // Transformer Engine's Float8BlockScaling; DeepSeek-V3 (arXiv 2412.19437)
constexpr std::int64_t kMxBlock = 32;     // OCP Microscaling Formats (MX) Specification, 2023
constexpr std::int64_t kNvfp4Block = 16;  // NVIDIA, Pretraining LLMs with NVFP4 (arXiv 2509.25149)
constexpr std::int64_t kPowerOfTwo = 1;   // bytes of an E8M0 or E4M3 scale

}  // namespace

Fp8Layout fp8_layout(Fp8 recipe, Fp8Operand operand, bool along_rows, std::int64_t runs, std::int64_t rows,
                     std::int64_t columns) {
  Fp8Layout layout;
  layout.runs = runs;
  layout.run_rows = rows / runs;
  layout.columns = columns;
  layout.block_rows = std::max<std::int64_t>(1, layout.run_rows);
  layout.block_columns = columns;
  if (scales_tensors(recipe) || recipe == Fp8::kNone) return layout;
  const std::int64_t block = recipe == Fp8::kBlock ? kBlock : recipe == Fp8::kMxfp8 ? kMxBlock : kNvfp4Block;
  const bool square = operand == Fp8Operand::kWeight && recipe != Fp8::kMxfp8;
  layout.block_rows = square || !along_rows ? block : 1;
  layout.block_columns = square || along_rows ? block : 1;
  if (recipe != Fp8::kBlock) layout.scale_bytes = kPowerOfTwo;
  if (recipe == Fp8::kNvfp4) layout.code_bits = 4;
  return layout;
}

Fp8Layout cast_layout(const Op& op, bool along_rows) {
  return fp8_layout(op.fp8, op.operand, along_rows, op.parts, op.m, op.n);
}

Fp8Operand operand_of(const Op& op, int operand) {
  const bool dgrad = op.kind == OpKind::kMatmulDgrad || op.kind == OpKind::kExpertMatmulDgrad;
  const bool wgrad = op.kind == OpKind::kMatmulWgrad || op.kind == OpKind::kExpertMatmulWgrad;
  if (operand == 0) return dgrad ? Fp8Operand::kGradient : Fp8Operand::kInput;
  return wgrad ? Fp8Operand::kGradient : Fp8Operand::kWeight;
}

// Scales lie along what a product sums over: k of y = x w, n of dx = dy w^T, the rows of dw = x^T dy.
Fp8Layout operand_layout(const Op& op, int operand) {
  const Fp8Operand what = operand_of(op, operand);
  const std::int64_t experts = std::max(1, op.experts);
  const bool wgrad = operand_of(op, 1) == Fp8Operand::kGradient;
  const bool dgrad = operand_of(op, 0) == Fp8Operand::kGradient;
  if (what == Fp8Operand::kWeight) return fp8_layout(op.fp8, what, dgrad, experts, experts * op.k, op.n);
  const std::int64_t columns = what == Fp8Operand::kInput ? op.k : op.n;
  return fp8_layout(op.fp8, what, !wgrad, op.experts > 0 ? experts * op.parts : 1, experts * op.m, columns);
}

}  // namespace trivium::program
