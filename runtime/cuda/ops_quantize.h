// Casts to 8 bits and products of what they give: operands to kernels and to cuBLASLt.
#pragma once

#include <algorithm>

#include "program/ir/fp8_layout.h"
#include "runtime/cuda/kernels/launch.h"
#include "runtime/cuda/kernels/quantize.h"
#include "runtime/cuda/ops_rows.h"

namespace trivium::runtime::cuda {

inline Codes codes_of(program::Fp8 recipe, program::Fp8Operand operand) {
  const bool wide = operand == program::Fp8Operand::kGradient && program::scales_tensors(recipe);
  return wide ? Codes::kE5M2 : Codes::kE4M3;
}

/// What a cast writes along rows or columns, or nothing.
struct CastTarget {
  std::uint8_t* codes = nullptr;
  float* scales = nullptr;
};
inline CastTarget cast_target(const KernelArguments& a, bool along_rows) {
  std::byte* const to = a.out[along_rows ? 0 : 1];
  if (to == nullptr) return {};
  const std::int64_t begin = program::cast_layout(*a.op, along_rows).scales_begin();
  return {reinterpret_cast<std::uint8_t*>(to), reinterpret_cast<float*>(to + begin)};
}

template <class T, Fp8Type kType, class Launcher>
void cast_runs(Launcher& l, const KernelArguments& a) {
  using Amaxes = LargestOfRuns<T>;
  using Cast = CastRuns<T, kType>;
  constexpr std::int64_t kBlocks = 4 * 132, kFewestPacks = 1024;  // to fill an H100; what a block is worth
  const RunShape s{a.op->parts, a.op->m / a.op->parts, a.op->n};
  const std::int64_t worth = s.elements() / Amaxes::kPack / kFewestPacks, fill = kBlocks / s.runs;
  const std::int64_t parts = std::clamp<std::int64_t>(std::min(worth, fill), 1, Amaxes::kThreads);
  auto* partial = reinterpret_cast<float*>(l.scratch(s.runs * parts * static_cast<std::int64_t>(sizeof(float))));
  const T* x = input<T>(a, 0);
  l.run(Amaxes{x, partial, s, parts}, s.runs * parts, Amaxes::kThreads, kReduceBytes);
  const CastTarget rows = cast_target(a, true), columns = cast_target(a, false);
  l.run(Cast{x, partial, rows.codes, columns.codes, rows.scales, columns.scales, s, parts}, s.runs * Cast::tiles(s),
        Cast::kThreads, Cast::shared_bytes());
}

template <class T, class Launcher>
void quantize(Launcher& l, const KernelArguments& a) {
  if (codes_of(a.op->fp8, a.op->operand) == Codes::kE4M3) {
    cast_runs<T, Fp8Type::kE4M3>(l, a);
  } else {
    cast_runs<T, Fp8Type::kE5M2>(l, a);
  }
  value_sums(l, input<T>(a, 0), a.op->n, a.op->m, a.op->n, output<float>(a, 2));
}

/// An operand of a product in 8 bits: where codes begin, and their scales, one a run.
struct CodedOperand {
  const std::byte* codes = nullptr;
  const float* scales = nullptr;
  Codes type = Codes::kNone;
};
inline CodedOperand coded_operand(const KernelArguments& a, int operand) {
  const std::byte* const from = a.in[static_cast<std::size_t>(operand)];
  const std::int64_t begin = program::operand_layout(*a.op, operand).scales_begin();
  return {from, reinterpret_cast<const float*>(from + begin), codes_of(a.op->fp8, program::operand_of(*a.op, operand))};
}

/// C (m, n) = A (m, k) B (n, k)^T of codes: A from element `at_a`, its scale at `scale_a`, and so on.
struct CodedProduct {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t at_a = 0, at_b = 0, scale_a = 0, scale_b = 0;
};
inline Gemm coded_gemm(const CodedOperand& a, const CodedOperand& b, const CodedProduct& p) {
  Gemm g{.m = p.m, .n = p.n, .k = p.k};
  g.a = a.codes + p.at_a, g.b = b.codes + p.at_b, g.b_transposed = true;
  g.a_codes = a.type, g.b_codes = b.type;
  g.a_scale = a.scales + p.scale_a, g.b_scale = b.scales + p.scale_b;
  g.lda = g.ldb = p.k, g.ldc = p.n;
  return g;
}

/// Transformer Engine's recipes sum forward products faster and with fewer bits (use_split_accumulator), gradients not.
template <class T, class Launcher>
void coded_matmul(Launcher& l, const KernelArguments& a) {
  const program::Op& op = *a.op;
  const bool forward = op.kind == program::OpKind::kMatmul, wgrad = op.kind == program::OpKind::kMatmulWgrad;
  const CodedOperand x = coded_operand(a, 0), w = coded_operand(a, 1);
  const CodedProduct p = forward ? CodedProduct{op.m, op.n, op.k}
                         : wgrad ? CodedProduct{op.k, op.n, op.m}
                                 : CodedProduct{op.m, op.k, op.n};
  Gemm g = coded_gemm(x, w, p);
  g.c = a.out[0], g.out = wgrad ? program::DType::kFp32 : kTypeOf<T>;
  g.beta = wgrad ? 1.0F : 0.0F, g.fast_sums = forward;
  if (forward) g.bias = a.in[2];
  l.gemm(g);
}

/// Every expert's rows have a scale of their own, so that each is a product by itself.
template <class T, class Launcher>
void coded_expert_matmul(Launcher& l, const KernelArguments& a) {
  const program::Op& op = *a.op;
  const bool forward = op.kind == program::OpKind::kExpertMatmul,
             wgrad = op.kind == program::OpKind::kExpertMatmulWgrad;
  CodedOperand x = coded_operand(a, 0), w = coded_operand(a, 1);
  const std::int64_t rows = op.m / op.parts, runs = static_cast<std::int64_t>(op.parts) * op.experts;
  const std::int64_t of_w = wgrad ? runs : op.experts;
  constexpr std::int64_t kApart = SpreadScales::kApart;
  auto* scales = reinterpret_cast<float*>(l.scratch((runs + of_w) * kApart * static_cast<std::int64_t>(sizeof(float))));
  run_elements(l, SpreadScales{x.scales, w.scales, scales, runs, of_w}, runs + of_w);
  x.scales = scales, w.scales = scales + runs * kApart;
  for (std::int64_t run = 0; run < runs; ++run) {
    const std::int64_t expert = run % op.experts, from = run * rows;
    const std::int64_t of_weight = expert * op.k * op.n;
    CodedProduct p{rows, op.n, op.k, from * op.k, of_weight, run * kApart, expert * kApart};
    if (wgrad) p = {op.k, op.n, rows, from * op.k, from * op.n, run * kApart, run * kApart};
    if (!forward && !wgrad) p = {rows, op.k, op.n, from * op.n, of_weight, run * kApart, expert * kApart};
    Gemm g = coded_gemm(x, w, p);
    g.out = wgrad ? program::DType::kFp32 : kTypeOf<T>, g.beta = wgrad ? 1.0F : 0.0F, g.fast_sums = forward;
    g.c = wgrad ? a.out[0] + of_weight * static_cast<std::int64_t>(sizeof(float))
                : a.out[0] + from * p.n * static_cast<std::int64_t>(sizeof(T));
    l.gemm(g);
  }
}

/// The function for an op of this file, for activations of type T; null for another op.
template <class T, class Launcher>
Operation<Launcher> coded_operation(const program::Op& op) {
  using program::OpKind;
  if (op.kind == OpKind::kQuantize) return quantize<T, Launcher>;
  if (op.fp8 == program::Fp8::kNone) return nullptr;
  const bool of_experts = op.kind == OpKind::kExpertMatmul || op.kind == OpKind::kExpertMatmulDgrad ||
                          op.kind == OpKind::kExpertMatmulWgrad;
  return of_experts ? coded_expert_matmul<T, Launcher> : coded_matmul<T, Launcher>;
}

}  // namespace trivium::runtime::cuda
