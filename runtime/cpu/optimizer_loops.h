// The optimizer's loops over elements, compiled once for each instruction set (variants/optimizer_loops.cpp). What they
// compute is the same bit by bit on all of them.
#pragma once

#include <cstdint>

#include "runtime/cpu/variant.h"

namespace trivium::runtime::cpu {

/// What AdamW does to every element of a parameter in one step (names as in optimizer.cpp).
template <class T>
struct AdamWFactors {
  T clip, rate, beta1, rest1, beta2, rest2, correct1, correct2, epsilon, decay;
};

template <class T>
struct OptimizerLoops {
  /// `count` elements: parameters p, gradients g, both moments.
  void (*adamw)(const AdamWFactors<T>& factors, T* p, const T* g, T* first, T* second, std::int64_t count);
  /// The sum of squares as a pair hi + lo of twice the precision (double_double.h), not added to what is there.
  void (*squares)(const T* x, std::int64_t count, double* hi, double* lo);
  /// Makes the singular values of x (m,n), m <= n, alike, near 1; `room`: of m n + 2 m m elements.
  void (*newton_schulz)(T* x, T* room, std::int64_t m, std::int64_t n, std::int64_t iterations);
};

/// Those of one variant, which must be available.
template <class T>
OptimizerLoops<T> optimizer_loops(Variant variant);

}  // namespace trivium::runtime::cpu
