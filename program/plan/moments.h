// Moments of AdamW: how they are kept between steps, and where the arrays of the optimizer's state lie.
#pragma once

#include <cstdint>
#include <string_view>

#include "program/plan/dtype.h"

namespace trivium::program {

/// What both moments are rounded to between steps; a step computes with what it read in the type of the values that it
/// steps. Megatron-Core's `exp_avg_dtype` and `exp_avg_sq_dtype`; bf16 as in DeepSeek-V3 (arXiv 2412.19437, 3.3.2).
enum class Moments : std::uint8_t {
  kFp32,  ///< not at all: they are of that type, fp32, or fp64 with fp64 parameters
  kBf16   ///< to nearest, ties to even
};
std::string_view name_of(Moments value);  ///< "fp32" "bf16"

/// The arrays of a bucket's optimizer state, one after the other, with one element each for every element of the
/// bucket's shard: first moments, second moments, with 16-bit parameters their fp32 copy, with fp16 gradients these.
struct StateArrays {
  DType precision{};  ///< of parameters
  Moments moments{};
  bool second = true;  ///< Muon has one moment

  static constexpr int kFirstMoment = 0, kSecondMoment = 1, kMaster = 2, kWideGradient = 3;

  /// How many arrays say something between steps.
  constexpr int kept() const { return is_half(precision) ? 3 : 2; }
  /// Element type of an array.
  constexpr DType type(int array) const {
    if (array <= kSecondMoment && moments == Moments::kBf16) return DType::kBf16;
    return is_half(precision) ? DType::kFp32 : precision;
  }
  /// Bytes before an array; with the number of arrays, bytes of all.
  constexpr std::int64_t offset(int array, std::int64_t shard) const {
    std::int64_t bytes = 0;
    for (int before = 0; before < array; ++before) {
      if (second || before != kSecondMoment) bytes += shard * size_of(type(before));
    }
    return bytes;
  }
};

}  // namespace trivium::program
