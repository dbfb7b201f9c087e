// Casts to 8 bits: operands to kernels.
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

/// By the largest number of steps before: one pass over x.
template <class T, Fp8Type kType, class Launcher>
void cast_by_history(Launcher& l, const KernelArguments& a) {
  using Cast = CastRuns<T, kType, true>;
  const RunShape s{a.op->parts, a.op->m / a.op->parts, a.op->n};
  auto* const history = reinterpret_cast<float*>(a.in[1]);
  const CastTarget rows = cast_target(a, true), columns = cast_target(a, false);
  l.run(Cast{input<T>(a, 0), nullptr, rows.codes, columns.codes, rows.scales, columns.scales, s, 0,
             history + program::AmaxHistory::kOfWindow * a.op->k, history},
        s.runs * Cast::tiles(s), Cast::kThreads, Cast::shared_bytes());
}

template <class T, Fp8Type kType, class Launcher>
void cast_runs(Launcher& l, const KernelArguments& a) {
  if (a.in[1] != nullptr && !a.values->looks_first) return cast_by_history<T, kType>(l, a);
  using Amaxes = LargestOfRuns<T>;
  using Cast = CastRuns<T, kType>;
  constexpr std::int64_t kBlocks = 4 * kMultiprocessors,
                         kFewestPacks = 1024;  // that run at once; what a block is worth
  const RunShape s{a.op->parts, a.op->m / a.op->parts, a.op->n};
  const std::int64_t worth = s.elements() / Amaxes::kPack / kFewestPacks, fill = kBlocks / s.runs;
  const std::int64_t parts = std::clamp<std::int64_t>(std::min(worth, fill), 1, Amaxes::kThreads);
  auto* partial = reinterpret_cast<float*>(l.scratch(s.runs * parts * static_cast<std::int64_t>(sizeof(float))));
  const T* x = input<T>(a, 0);
  l.run(Amaxes{x, partial, s, parts}, s.runs * parts, Amaxes::kThreads, kReduceBytes);
  const CastTarget rows = cast_target(a, true), columns = cast_target(a, false);
  l.run(Cast{x, partial, rows.codes, columns.codes, rows.scales, columns.scales, s, parts, nullptr,
             reinterpret_cast<float*>(a.in[1])},
        s.runs * Cast::tiles(s), Cast::kThreads, Cast::shared_bytes());
}

template <class Launcher>
void record_largest(Launcher& l, const KernelArguments& a) {
  using program::AmaxHistory;
  const std::int64_t sites = a.op->m, steps = a.op->k;
  auto* const history = output<float>(a, 0);
  const auto row = [&](std::int64_t number) { return history + number * sites; };
  l.run(RecordLargest{row(AmaxHistory::kThisStep), row(AmaxHistory::kOfWindow), row(AmaxHistory::kFirstStep), sites,
                      steps, a.values->step % steps},
        sites, RecordLargest::kThreads, kReduceBytes);
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

}  // namespace trivium::runtime::cuda
