// Rotary position embedding on the q and k heads of (T, q|k|v), in place (cpu/variants/rotary.cpp has the formulas).
#pragma once

#include <cmath>

#include "runtime/cuda/kernels/numbers.h"
#include "runtime/cuda/kernels/rows.h"

namespace trivium::runtime::cuda {

/// Threads over (row, pair of components): the angle is computed once, in fp64, for all heads.
template <class T>
struct Rotary {
  const T* from;
  T* to;  ///< may be `from`
  std::int64_t m;
  int turned, heads_in_all, dim;
  float direction;
  Positions positions;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t item = t.block() * t.threads() + t.thread();
    const int half = dim / 2;
    if (item >= m * half) return;
    const std::int64_t r = item / half, i = item % half;
    constexpr double kLog2OfBase = 13.287712379549449;  // of 10000
    const double angle = static_cast<double>(positions.of_row(r)) *
                         exp2(-kLog2OfBase * static_cast<double>(i) / static_cast<double>(half));
    const float cosine = static_cast<float>(cos(angle)), sine = static_cast<float>(sin(angle)) * direction;
    const std::int64_t row = r * heads_in_all * dim + i;
    for (int h = 0; h < heads_in_all; ++h) {
      const std::int64_t at = row + static_cast<std::int64_t>(h) * dim;
      const float first = widen(from[at]), second = widen(from[at + half]);
      const bool turns = h < turned;
      to[at] = narrow<T>(turns ? first * cosine - second * sine : first);
      to[at + half] = narrow<T>(turns ? second * cosine + first * sine : second);
    }
  }
};

}  // namespace trivium::runtime::cuda
