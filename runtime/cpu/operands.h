// Typed access to a kernel's operands.
// The functions are static (one copy per translation unit) because the linker must not merge copies that were compiled
// for different instruction sets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "program/context.h"
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

/// Position within its sample of the op's local token row `r`: rows are sample-major, and with sequence parallelism
/// this rank holds rows [tensor_rank * m, +m) of its context rank's part of the micro-batch.
[[maybe_unused]] static std::int64_t position_of(const KernelArguments& a, std::int64_t r, std::int64_t sequence) {
  const std::int64_t local = (r + (a.op->token_sharded ? a.tensor_rank * a.op->m : 0)) % (sequence / a.context_ranks);
  return program::context_position(a.context_method, local, sequence, a.context_rank, a.context_ranks);
}

}  // namespace trivium::runtime::cpu
