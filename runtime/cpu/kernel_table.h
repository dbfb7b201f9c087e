// Kernels by op kind. Every file of kernels adds its own to the table, at its end.
#pragma once

#include <array>

#include "runtime/kernel.h"

namespace trivium::runtime::cpu {

/// One processor's kernels; null where there is none.
struct KernelTable {
  std::array<Kernel, program::kOpKinds> fp32{}, fp64{};
  std::array<Kernel, program::kOpKinds> half{};  ///< those that do not go by way of fp32 (widened.cpp): bf16 and fp16

  void add(program::OpKind kind, Kernel of_float, Kernel of_double) {
    fp32[static_cast<std::size_t>(kind)] = of_float;
    fp64[static_cast<std::size_t>(kind)] = of_double;
  }
  void add_half(program::OpKind kind, Kernel kernel) { half[static_cast<std::size_t>(kind)] = kernel; }
  /// A kernel that moves bytes of any type.
  void add_any(program::OpKind kind, Kernel kernel) {
    add(kind, kernel, kernel);
    add_half(kind, kernel);
  }
};

}  // namespace trivium::runtime::cpu
