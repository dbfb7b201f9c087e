// Products of operands in 8 bits: to cuBLASLt, with their scales where it reads them.
#pragma once

#include "program/ir/fp8_layout.h"
#include "runtime/cuda/kernels/launch.h"
#include "runtime/cuda/kernels/scales.h"
#include "runtime/cuda/ops_parts.h"
#include "runtime/cuda/ops_quantize.h"

namespace trivium::runtime::cuda {

/// The products of an op, which are all C (m, n) = A (m, k) B (n, k)^T: one, or one a run of an expert's rows, as every
/// run of an operand has scales of its own.
struct CodedProducts {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t count = 1, weights = 1;
  bool forward = false, wgrad = false;

  explicit CodedProducts(const program::Op& op) {
    using program::OpKind;
    const bool experts = op.experts > 0;
    forward = op.kind == OpKind::kMatmul || op.kind == OpKind::kExpertMatmul;
    wgrad = op.kind == OpKind::kMatmulWgrad || op.kind == OpKind::kExpertMatmulWgrad;
    const std::int64_t rows = experts ? op.m / op.parts : op.m;
    if (experts) weights = op.experts, count = weights * op.parts;
    m = wgrad ? op.k : rows;
    n = forward || wgrad ? op.n : op.k;
    k = wgrad ? rows : forward ? op.k : op.n;
  }
  /// Runs of B, and that of product `at`: a run of rows, or the expert's weight.
  std::int64_t runs_of_b() const { return wgrad ? count : weights; }
  std::int64_t run_of_b(std::int64_t at) const { return wgrad ? at : at % weights; }
  /// Where C begins, in elements: what gradients of a weight are added up in is the expert's.
  std::int64_t c_begin(std::int64_t at) const { return (wgrad ? at % weights : at) * m * n; }
};

/// An operand: (runs, rows of the result, numbers that are summed) codes and, `scale_run` bytes from run to run,
/// scales.
struct CodedOperand {
  const std::byte* codes = nullptr;
  const std::byte* scales = nullptr;
  Codes type = Codes::kNone;
  std::int64_t runs = 1, scale_run = 0;
};
inline CodedOperand coded_operand(const KernelArguments& a, int operand) {
  const std::byte* const from = a.in[static_cast<std::size_t>(operand)];
  const program::Fp8Layout layout = program::operand_layout(*a.op, operand);
  return {from, from + layout.scales_begin(), codes_of(a.op->fp8, program::operand_of(*a.op, operand)), layout.runs,
          layout.scale_bytes * layout.blocks() / layout.runs};
}

/// Lays a tensor's scale of each run where a product may read it; returns where those of the next operand may lie.
template <class Launcher>
std::byte* spread_scales(Launcher& l, CodedOperand& operand, std::byte* to) {
  constexpr std::int64_t kPadded = 4;
  auto* const laid = reinterpret_cast<float*>(to);
  const PadScales pad{reinterpret_cast<const float*>(operand.scales), laid, operand.runs, 1, 1, kPadded, 1, 0, 0};
  run_elements(l, pad, pad.count());
  operand.scales = to, operand.scale_run = kPadded * static_cast<std::int64_t>(sizeof(float));
  return to + operand.runs * operand.scale_run;
}

/// Transformer Engine's recipes sum forward products faster and with fewer bits (use_split_accumulator), gradients not.
template <class T, class Launcher>
void coded_matmul(Launcher& l, const KernelArguments& a) {
  const CodedProducts p(*a.op);
  CodedOperand first = coded_operand(a, 0), second = coded_operand(a, 1);
  if (p.count > 1) {
    const std::int64_t scales = first.runs + second.runs;
    std::byte* const room = l.scratch(4 * scales * static_cast<std::int64_t>(sizeof(float)));
    spread_scales(l, second, spread_scales(l, first, room));
  }
  Gemm g{.m = p.m, .n = p.n, .k = p.k};
  g.a_codes = first.type, g.b_codes = second.type, g.b_transposed = true;
  g.lda = g.ldb = p.k, g.ldc = p.n;
  g.out = p.wgrad ? program::DType::kFp32 : kTypeOf<T>;
  g.beta = p.wgrad ? 1.0F : 0.0F, g.fast_sums = p.forward;
  if (a.op->kind == program::OpKind::kMatmul) g.bias = a.in[2];
  for (std::int64_t at = 0; at < p.count; ++at) {
    const std::int64_t b = p.run_of_b(at);
    g.a = first.codes + at * p.m * p.k;
    g.b = second.codes + b * p.n * p.k;
    g.a_scale = reinterpret_cast<const float*>(first.scales + at * first.scale_run);
    g.b_scale = reinterpret_cast<const float*>(second.scales + b * second.scale_run);
    g.c = a.out[0] + p.c_begin(at) * size_of(g.out);
    l.gemm(g);
  }
}

/// The function for an op of products or casts in 8 bits, for activations of type T; null for another op.
template <class T, class Launcher>
Operation<Launcher> coded_operation(const program::Op& op) {
  if (op.kind == program::OpKind::kQuantize) return quantize<T, Launcher>;
  return op.fp8 == program::Fp8::kNone ? nullptr : coded_matmul<T, Launcher>;
}

}  // namespace trivium::runtime::cuda
