// Rotary position embedding on the q and k heads of (T, q|k|v), in place (cpu/variants/rotary.cpp has the formulas).
#pragma once

#include <cmath>

#include "runtime/cuda/kernels/numbers.h"
#include "runtime/cuda/kernels/rows.h"

namespace trivium::runtime::cuda {

inline constexpr int kMostRotaryPairs = 128;

/// Threads over (row, pair of components): the angle is computed once, in fp64, for all heads. Components after the
/// rotated pairs are copied, two by a thread.
template <class T>
struct Rotary {
  const T* from;
  T* to;  ///< may be `from`
  std::int64_t m;
  int turned, heads_in_all, dim;
  float direction;
  Positions positions;
  int pairs;  ///< that turn
  double amplitude;
  double frequencies[kMostRotaryPairs];
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t item = t.block() * t.threads() + t.thread();
    const int threads_of_row = (dim + 1) / 2;
    if (item >= m * threads_of_row) return;
    const std::int64_t r = item / threads_of_row, i = item % threads_of_row;
    if (i >= pairs) return copy(r, 2 * i);
    const double angle = static_cast<double>(positions.of_row(r)) * frequencies[i];
    const float cosine = static_cast<float>(cos(angle) * amplitude),
                sine = static_cast<float>(sin(angle) * amplitude) * direction;
    const int half = pairs;
    const std::int64_t row = r * heads_in_all * dim + i;
    for (int h = 0; h < heads_in_all; ++h) {
      const std::int64_t at = row + static_cast<std::int64_t>(h) * dim;
      const float first = widen(from[at]), second = widen(from[at + half]);
      const bool turns = h < turned;
      to[at] = narrow<T>(turns ? first * cosine - second * sine : first);
      to[at + half] = narrow<T>(turns ? second * cosine + first * sine : second);
    }
  }

  TRIVIUM_DEVICE void copy(std::int64_t r, std::int64_t i) const {
    for (int h = 0; h < heads_in_all; ++h) {
      const std::int64_t at = (r * heads_in_all + h) * dim;
      for (std::int64_t c = i; c < i + 2 && c < dim; ++c) to[at + c] = from[at + c];
    }
  }
};

}  // namespace trivium::runtime::cuda
