// Scales of operands in 8 bits (program/ir/fp8_layout.h) where cuBLASLt reads them.
#pragma once

#include "runtime/cuda/kernels/numbers.h"

namespace trivium::runtime::cuda {

/// (runs, outer, inner) scales, `inner` along what a product sums over, with `padded` of them in a row: a multiple of
/// four, since cuBLASLt reads every product's scales, and those of every row of squares, at a multiple of 16 bytes
/// (cuBLAS 13, "Scaling Factors Layouts"). Where scale (run, o, i) lies before, in numbers: run * of_run + o * of_outer
/// + i * of_inner. What is padding is 0.
struct PadScales {
  const float* from;
  float* to;
  std::int64_t runs, outer, inner, padded;
  std::int64_t of_run, of_outer, of_inner;
  std::int64_t count() const { return runs * outer * padded; }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t at = t.block() * t.threads() + t.thread();
    if (at >= runs * outer * padded) return;
    const std::int64_t i = at % padded, row = at / padded;
    to[at] = i < inner ? from[row / outer * of_run + row % outer * of_outer + i * of_inner] : 0.0F;
  }
};

}  // namespace trivium::runtime::cuda
