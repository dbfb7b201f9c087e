// Typed access to a kernel's operands.
// The functions are static (one copy per translation unit) because the linker must not merge copies that were compiled
// for different instruction sets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "program/ir/context.h"
#include "runtime/kernel.h"

namespace trivium::runtime::cpu {

/// Operand `i` as elements of type T; null where the op has none.
template <class T>
[[maybe_unused]] static const T* input(const KernelArguments& a, std::size_t i) {
  return reinterpret_cast<const T*>(a.in[i]);
}

template <class T>
[[maybe_unused]] static T* output(const KernelArguments& a, std::size_t i) {
  return reinterpret_cast<T*>(a.out[i]);
}

/// The op's local token row `r` among those of its context rank's part of the micro-batch: rows are sample-major, and
/// with sequence parallelism this rank holds rows [tensor_rank * m, +m).
[[maybe_unused]] static std::int64_t token_row(const KernelArguments& a, std::int64_t r) {
  return r + (a.op->token_sharded ? a.tensor_rank * a.op->m : 0);
}

/// Its sample within the micro-batch.
[[maybe_unused]] static std::int64_t sample_of(const KernelArguments& a, std::int64_t r, std::int64_t sequence) {
  return token_row(a, r) / (sequence / a.context_ranks);
}

/// Its position within that sample, or within the text that it goes on.
[[maybe_unused]] static std::int64_t position_of(const KernelArguments& a, std::int64_t r, std::int64_t sequence) {
  const std::int64_t local = token_row(a, r) % (sequence / a.context_ranks);
  return a.past + program::context_position(a.context_method, local, sequence, a.context_rank, a.context_ranks);
}

/// Its position within its document.
[[maybe_unused]] static std::int64_t document_position_of(const KernelArguments& a, std::int64_t r,
                                                          std::int64_t sequence) {
  const std::int64_t position = position_of(a, r, sequence);
  if (a.document_starts == nullptr) return position;
  return position - a.document_starts[sample_of(a, r, sequence) * sequence + position];
}

}  // namespace trivium::runtime::cpu
