// Small whole numbers as elements of every type.
#pragma once

#include <bit>
#include <cstring>
#include <vector>

#include "program/plan/dtype.h"

namespace trivium::runtime {

/// `value` (0 … 255) as the bytes of one element. 16-bit floats are derived from the fp32 bits, where small whole
/// numbers have only zeros below the bits that are kept.
inline std::vector<std::byte> element_of(program::DType type, int value) {
  const auto bytes_of = [](auto number) {
    std::vector<std::byte> bytes(sizeof(number));
    std::memcpy(bytes.data(), &number, sizeof(number));
    return bytes;
  };
  const auto fp32_bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  switch (type) {
    case program::DType::kFp64:
      return bytes_of(static_cast<double>(value));
    case program::DType::kFp32:
      return bytes_of(static_cast<float>(value));
    case program::DType::kBf16:
      return bytes_of(static_cast<std::uint16_t>(fp32_bits >> 16));
    case program::DType::kFp16:  // sign 1, exponent 5 (bias 15 for 127), mantissa 10 of 23 bits
      return bytes_of(static_cast<std::uint16_t>(value == 0 ? 0 : (fp32_bits - (112u << 23)) >> 13));
    case program::DType::kInt32:
      return bytes_of(static_cast<std::int32_t>(value));
    case program::DType::kUint8:
      return bytes_of(static_cast<std::uint8_t>(value));
  }
  return {};
}

/// `count` elements, element e being value(e).
template <class Value>
std::vector<std::byte> elements_of(program::DType type, std::int64_t count, const Value& value) {
  std::vector<std::byte> all;
  all.reserve(static_cast<std::size_t>(count * program::size_of(type)));
  for (std::int64_t e = 0; e < count; ++e) {
    const std::vector<std::byte> one = element_of(type, value(e));
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

constexpr program::DType kAllTypes[] = {program::DType::kFp64, program::DType::kFp32,  program::DType::kBf16,
                                        program::DType::kFp16, program::DType::kInt32, program::DType::kUint8};

}  // namespace trivium::runtime
