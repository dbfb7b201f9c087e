// 8-bit floats as bits (Micikevicius et al. 2022, arXiv 2209.05433): narrowing rounds to nearest, ties to even, and
// what is too large becomes the largest number, as tensor cores' casts do. Neither type keeps infinities here: they and
// NaN become NaN. Written with integers so that every processor gives the same bits.
#pragma once

#include <bit>
#include <cstdint>

namespace trivium::runtime::reduction {

/// E4M3: no infinities, one NaN. E5M2: as IEEE 754 would have it.
enum class Fp8Type : std::uint8_t { kE4M3, kE5M2 };

struct Fp8Format {
  int mantissa_bits;
  int bias;
  float largest;
};
constexpr Fp8Format format_of(Fp8Type type) {
  return type == Fp8Type::kE4M3 ? Fp8Format{3, 7, 448.F} : Fp8Format{2, 15, 57344.F};
}

constexpr std::uint8_t kFp8NaN = 0x7f;

constexpr std::uint8_t fp8_of_float(float value, Fp8Type type) {
  const Fp8Format format = format_of(type);
  const std::uint32_t all = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (all >> 24) & 0x80u;
  std::uint32_t bits = all & 0x7fffffffu;
  if (bits >= 0x7f800000u) return static_cast<std::uint8_t>(sign | kFp8NaN);
  const std::uint32_t largest = std::bit_cast<std::uint32_t>(format.largest);
  if (bits > largest) bits = largest;
  const int dropped = 23 - format.mantissa_bits;
  const auto smallest_normal = static_cast<std::uint32_t>(127 + 1 - format.bias) << 23;
  if (bits < smallest_normal) {
    // The float adder rounds to a multiple of the unit of subnormals, 2^(1 - bias - mantissa bits).
    const auto unit = static_cast<std::uint32_t>(127 + 1 - format.bias + dropped) << 23;
    bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits) + std::bit_cast<float>(unit)) - unit;
  } else {
    const std::uint32_t odd = (bits >> dropped) & 1u, half = (1u << (dropped - 1)) - 1;
    bits = (bits - (static_cast<std::uint32_t>(127 - format.bias) << 23) + half + odd) >> dropped;
  }
  return static_cast<std::uint8_t>(sign | bits);
}

constexpr float float_of_fp8(std::uint8_t code, Fp8Type type) {
  const Fp8Format format = format_of(type);
  const std::uint32_t sign = (code & 0x80u) << 24, magnitude = code & 0x7fu;
  const std::uint32_t nan_from = type == Fp8Type::kE4M3 ? 0x7fu : 0x7cu;
  if (magnitude >= nan_from) return std::bit_cast<float>(sign | 0x7fc00000u);
  const int dropped = 23 - format.mantissa_bits;
  if (magnitude >> format.mantissa_bits == 0) {  // subnormal: as many units
    const auto unit = static_cast<std::uint32_t>(127 + 1 - format.bias - format.mantissa_bits) << 23;
    const float size = static_cast<float>(magnitude) * std::bit_cast<float>(unit);
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | sign);
  }
  return std::bit_cast<float>(sign | ((magnitude << dropped) + (static_cast<std::uint32_t>(127 - format.bias) << 23)));
}

}  // namespace trivium::runtime::reduction
