// One number of an array whose type is known only when it runs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "program/plan/dtype.h"
#include "runtime/reduction/half.h"

namespace trivium::runtime::reduction {

/// Element `index` of an array of floating-point numbers of `type`, exactly.
inline double number_at(const std::byte* base, std::int64_t index, program::DType type) {
  switch (type) {
    case program::DType::kFp64:
      return reinterpret_cast<const double*>(base)[index];
    case program::DType::kBf16:
      return float_of_bf16(reinterpret_cast<const std::uint16_t*>(base)[index]);
    case program::DType::kFp16:
      return float_of_fp16(reinterpret_cast<const std::uint16_t*>(base)[index]);
    default:
      return reinterpret_cast<const float*>(base)[index];
  }
}

}  // namespace trivium::runtime::reduction
