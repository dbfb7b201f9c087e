// Why a variant of the CPU's kernels cannot be tested here.
#pragma once

#include <string>

#include "runtime/cpu/variant.h"

namespace trivium::runtime::cpu {

/// Instructions that dispatch.cpp asks for and this machine has not. Precondition: !available(variant).
inline std::string lacking(Variant variant) {
#if defined(__x86_64__)
  return std::string("this processor or its operating system lacks ") +
         (variant == Variant::kV4 ? "AVX-512 (F, DQ, VL and BW)" : "AVX2 or FMA");
#else
  static_cast<void>(variant);
  return "this processor is no x86-64";
#endif
}

}  // namespace trivium::runtime::cpu
