// Element types of buffers.
#pragma once

#include <cstdint>
#include <string_view>

namespace trivium::program {

enum class DType : std::uint8_t { kFp64, kFp32, kBf16, kFp16, kInt32, kUint8 };

constexpr std::int64_t size_of(DType type) {
  switch (type) {
    case DType::kFp64:
      return 8;
    case DType::kFp32:
    case DType::kInt32:
      return 4;
    case DType::kBf16:
    case DType::kFp16:
      return 2;
    case DType::kUint8:
      return 1;
  }
  return 0;
}

std::string_view name_of(DType type);  ///< "fp64", "fp32", "bf16", "fp16", "int32", "uint8"

constexpr bool is_half(DType type) { return type == DType::kBf16 || type == DType::kFp16; }

}  // namespace trivium::program
