// Element types of kernels: arithmetic is fp32, memory is fp32, bf16 or fp16.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#endif

#include "runtime/cuda/kernels/simt.h"
#include "runtime/reduction/half.h"

namespace trivium::runtime::cuda {

/// bfloat16 as bits.
struct Bf16 {
  std::uint16_t bits;
};

/// IEEE half precision as bits.
struct Fp16 {
  std::uint16_t bits;
};

TRIVIUM_DEVICE std::uint32_t bits_of(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(value);
#else
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}

TRIVIUM_DEVICE float float_of(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
#endif
}

TRIVIUM_DEVICE float widen(float x) { return x; }
TRIVIUM_DEVICE float widen(Bf16 x) { return float_of(static_cast<std::uint32_t>(x.bits) << 16); }

template <class T>
TRIVIUM_DEVICE T narrow(float x);
template <>
TRIVIUM_DEVICE float narrow<float>(float x) {
  return x;
}
/// To nearest, ties to even, as reduction/half.h.
template <>
TRIVIUM_DEVICE Bf16 narrow<Bf16>(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  std::uint16_t converted;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(converted) : "f"(x));
  return {converted};
#else
  const std::uint32_t bits = bits_of(x);
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  return {static_cast<std::uint16_t>((is_nan ? bits | 0x00400000U : rounded) >> 16)};
#endif
}

/// To nearest; what is too large becomes infinite.
TRIVIUM_DEVICE std::uint16_t fp16_bits(float x) {
#if defined(__CUDA_ARCH__)
  return __half_as_ushort(__float2half_rn(x));
#else
  return reduction::fp16_of_float(x);
#endif
}

TRIVIUM_DEVICE float float_of_fp16_bits(std::uint16_t bits) {
#if defined(__CUDA_ARCH__)
  return __half2float(__ushort_as_half(bits));
#else
  return reduction::float_of_fp16(bits);
#endif
}

TRIVIUM_DEVICE float widen(Fp16 x) { return float_of_fp16_bits(x.bits); }
template <>
TRIVIUM_DEVICE Fp16 narrow<Fp16>(float x) {
  return {fp16_bits(x)};
}

/// Two numbers as T in one word, the first in the low half.
template <class T>
TRIVIUM_DEVICE std::uint32_t pair_of(float low, float high) {
  return static_cast<std::uint32_t>(narrow<T>(high).bits) << 16 | narrow<T>(low).bits;
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <>
TRIVIUM_DEVICE std::uint32_t pair_of<Bf16>(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
template <>
TRIVIUM_DEVICE std::uint32_t pair_of<Fp16>(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
#endif

/// W neighbouring elements, moved as one.
template <class T, int W>
struct alignas(sizeof(T) * W) Pack {
  T of[W];
};

template <int W, class T>
TRIVIUM_DEVICE void load(const T* from, float (&to)[W]) {
  const Pack<T, W> pack = *reinterpret_cast<const Pack<T, W>*>(from);
  for (int i = 0; i < W; ++i) to[i] = widen(pack.of[i]);
}

/// W neighbouring elements as they lie in memory, two of 16 bits in a register: for kernels that have many under way.
template <class T, int W>
struct Raw {
  static constexpr bool kPairs = sizeof(T) == 2 && W % 2 == 0;
  using Word = std::conditional_t<kPairs, std::uint32_t, T>;
  Pack<Word, kPairs ? W / 2 : W> words;

  TRIVIUM_DEVICE void widen_to(float (&to)[W]) const {
    TRIVIUM_UNROLL
    for (int i = 0; i < W; ++i) {
      if constexpr (kPairs) {
        const std::uint32_t word = words.of[i / 2];
        if constexpr (std::is_same_v<T, Bf16>) {
          to[i] = float_of(i % 2 == 0 ? word << 16 : word & 0xffff0000U);
        } else {
          to[i] = float_of_fp16_bits(static_cast<std::uint16_t>(i % 2 == 0 ? word : word >> 16));
        }
      } else {
        to[i] = widen(words.of[i]);
      }
    }
  }
};

template <int W, class T>
TRIVIUM_DEVICE Raw<T, W> hold(const T* from) {
#if defined(__CUDA_ARCH__)
  return *reinterpret_cast<const Raw<T, W>*>(from);
#else
  Raw<T, W> held;
  std::memcpy(&held, from, sizeof held);
  return held;
#endif
}

/// What a source of column sums (rows.h) fetches of a row where that is the values themselves.
template <int W>
struct Fetched {
  float values[W];
};
/// What its rows have in common where that is nothing.
struct Nothing {};

/// The column of element i of rows of n.
TRIVIUM_DEVICE std::int64_t column_of(std::int64_t i, std::int64_t n) {
  constexpr std::int64_t kMost = 0xffffffff;  // 64 bits take twice as many instructions to divide
  return i <= kMost ? static_cast<std::uint32_t>(i) % static_cast<std::uint32_t>(n) : i % n;
}

#if defined(__CUDA_ARCH__)
constexpr bool kConvertsPairs = true;  ///< two conversions to 16 bits are one instruction
#else
constexpr bool kConvertsPairs = false;
#endif

template <int W, class T>
TRIVIUM_DEVICE void store(T* to, const float (&from)[W]) {
  if constexpr (kConvertsPairs && sizeof(T) == 2 && W % 2 == 0) {
    Pack<std::uint32_t, W / 2> words;
    for (int i = 0; i < W / 2; ++i) words.of[i] = pair_of<T>(from[2 * i], from[2 * i + 1]);
    *reinterpret_cast<Pack<std::uint32_t, W / 2>*>(to) = words;
  } else {
    Pack<T, W> pack;
    for (int i = 0; i < W; ++i) pack.of[i] = narrow<T>(from[i]);
    *reinterpret_cast<Pack<T, W>*>(to) = pack;
  }
}

/// An unevaluated sum of two doubles (cpu/double_double.h), for sums that do not depend on how they are spread.
struct Double2 {
  double hi, lo;
};

TRIVIUM_DEVICE Double2 exact_sum(double a, double b) {
  const double sum = a + b, b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

TRIVIUM_DEVICE Double2 operator+(Double2 a, Double2 b) {
  const Double2 high = exact_sum(a.hi, b.hi), low = exact_sum(a.lo, b.lo);
  double tail = high.lo + low.hi;
  const double first = high.hi + tail;
  tail = tail - (first - high.hi) + low.lo;
  const double sum = first + tail;
  return {sum, tail - (sum - first)};
}

/// Likewise, without bringing the pair into its usual form: for sums of very many numbers, which + takes afterwards.
/// The low part is rounded by 2^-53 of itself an addition.
TRIVIUM_DEVICE Double2 plus(Double2 a, double x) {
  const Double2 high = exact_sum(a.hi, x);
  return {high.hi, a.lo + high.lo};
}

}  // namespace trivium::runtime::cuda
