// Where cuBLAS 13's documentation ("Scaling Factors Layouts") has the scales of an operand in 8 bits.
#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/cuda/gemm.h"

namespace trivium::runtime::cuda {

/// The scale of number (outer, inner) of an operand of `outers` rows of A, or columns of B, and `inners` numbers that
/// are summed.
inline float scale_at(Scaling scaling, const void* scales, std::int64_t outer, std::int64_t outers, std::int64_t inner,
                      std::int64_t inners) {
  const auto* numbers = static_cast<const float*>(scales);
  if (scaling == Scaling::kTensor) return numbers[0];
  if (scaling == Scaling::kVectors128) return numbers[inner / 128 * outers + outer];
  if (scaling == Scaling::kSquares128) {
    const std::int64_t stride = ((inners + 127) / 128 + 3) / 4 * 4;
    return numbers[outer / 128 * stride + inner / 128];
  }
  const std::int64_t column = inner / 32, columns = ((inners + 31) / 32 + 3) / 4 * 4;
  const std::int64_t tile = (column / 4 * 4 + outer / 128 * columns) * 128;
  const std::int64_t within = outer % 128 % 32 * 16 + outer % 128 / 32 * 4 + column % 4;
  return std::ldexp(1.0F, static_cast<const std::uint8_t*>(scales)[tile + within] - 127);
}

/// Bytes of an operand's scales.
inline std::int64_t bytes_of_scales(Scaling scaling, std::int64_t outers, std::int64_t inners) {
  const auto up = [](std::int64_t n, std::int64_t to) { return (n + to - 1) / to; };
  if (scaling == Scaling::kTensor) return 4;
  if (scaling == Scaling::kVectors128) return up(inners, 128) * outers * 4;
  if (scaling == Scaling::kSquares128) return up(outers, 128) * up(inners, 512) * 4 * 4;
  return up(outers, 128) * up(inners, 128) * 512;
}

/// Whether cuBLASLt multiplies operands with such scales.
inline bool go_together(Scaling a, Scaling b) {
  if (a == Scaling::kTensor || a == Scaling::kVectors32) return a == b;
  const auto of_128 = [](Scaling s) { return s == Scaling::kVectors128 || s == Scaling::kSquares128; };
  return of_128(b) && (a == Scaling::kVectors128 || b == Scaling::kVectors128);
}

}  // namespace trivium::runtime::cuda
