// Where buffers begin in the memory that a plan lays out.
#pragma once

#include <cstdint>

namespace trivium::program {

inline constexpr std::int64_t kAlignment = 64;  ///< bytes: a cache line, and what kernels are promised

/// `bytes` and what lies between their end and the next buffer.
constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace trivium::program
