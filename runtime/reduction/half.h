// 16-bit floats as bits: widening is exact, narrowing rounds to nearest, ties to even.
// Written with integers so that every processor gives the same bits.
#pragma once

#include <bit>
#include <cstdint>

namespace trivium::runtime::reduction {

inline float float_of_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

inline std::uint16_t bf16_of_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  // Rounding could carry a NaN's mantissa into infinity or zero: keep its sign and make it quiet instead.
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<std::uint16_t>((is_nan ? bits | 0x00400000u : rounded) >> 16);
}

/// Rounds once: the float in between is cut off, with its last bit set where anything was lost (rounding to odd), which
/// keeps ties apart from what lies beside them.
inline std::uint16_t bf16_of_double(double value) {
  const float narrow = static_cast<float>(value);
  const double back = narrow;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(narrow);
  const bool lost = back < value || back > value;  // of a NaN nothing
  if (lost && (bits & 0x7fffffffu) != 0x7f800000u) {
    if ((value < 0 ? back < value : back > value)) --bits;
    bits |= 1u;
  }
  return bf16_of_float(std::bit_cast<float>(bits));
}

inline float float_of_fp16(std::uint16_t bits) {
  constexpr std::uint32_t kExponentMask = 0x7c00u << 13;
  constexpr std::uint32_t kRebias = (127u - 15u) << 23;
  std::uint32_t wide = (bits & 0x7fffu) << 13;
  const std::uint32_t exponent = wide & kExponentMask;
  wide += kRebias;
  if (exponent == kExponentMask) {
    wide += kRebias;  // infinity and NaN keep the highest exponent
  } else if (exponent == 0) {
    // Subnormal: 2^-14 * (1 + mantissa) - 2^-14 normalises exactly.
    wide = std::bit_cast<std::uint32_t>(std::bit_cast<float>(wide + (1u << 23)) - std::bit_cast<float>(113u << 23));
  }
  return std::bit_cast<float>(wide | (bits & 0x8000u) << 16);
}

inline std::uint16_t fp16_of_float(float value) {
  constexpr std::uint32_t kTooLarge = (127u + 16u) << 23;        // 65536; what rounds up to it is handled below
  constexpr std::uint32_t kSmallestNormal = (127u - 14u) << 23;  // 2^-14
  constexpr std::uint32_t kSubnormalUnit = (127u - 1u) << 23;    // 0.5: its last mantissa bit is 2^-24
  const std::uint32_t all = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = all & 0x80000000u;
  std::uint32_t bits = all ^ sign;
  if (bits >= kTooLarge) {
    bits = bits > 0x7f800000u ? 0x7e00u : 0x7c00u;
  } else if (bits < kSmallestNormal) {
    // The float adder rounds to a multiple of 2^-24, the unit of subnormals.
    bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits) + std::bit_cast<float>(kSubnormalUnit)) -
           kSubnormalUnit;
  } else {
    const std::uint32_t odd = (bits >> 13) & 1u;
    bits = (bits - ((127u - 15u) << 23) + 0xfffu + odd) >> 13;
  }
  return static_cast<std::uint16_t>(bits | sign >> 16);
}

}  // namespace trivium::runtime::reduction
