// Random words by number, without a state: Philox-4x32-10 (Salmon, Moraes, Dror and Shaw 2011, Parallel random numbers:
// as easy as 1, 2, 3, SC '11, section 3.3; constants of its table 2 and of the reference implementation). For host and
// device. The functions are static, as those of cpu/operands.h are.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define TRIVIUM_HOST_DEVICE __host__ __device__
#else
#define TRIVIUM_HOST_DEVICE
#endif

namespace trivium::runtime {

/// Four words: a counter, or what is drawn for it.
struct PhiloxWords {
  std::uint32_t of[4];
};

inline constexpr int kPhiloxRounds = 10;
inline constexpr std::uint32_t kPhiloxFirst = 0xD2511F53, kPhiloxSecond = 0xCD9E8D57;          // multipliers
inline constexpr std::uint32_t kPhiloxFirstStep = 0x9E3779B9, kPhiloxSecondStep = 0xBB67AE85;  // of the key

/// Four words uniform over all of 32 bits. Different (counter, key) give words that pass as independent.
[[maybe_unused]] TRIVIUM_HOST_DEVICE static inline PhiloxWords philox(PhiloxWords counter, std::uint64_t key) {
  auto first = static_cast<std::uint32_t>(key), second = static_cast<std::uint32_t>(key >> 32);
  PhiloxWords c = counter;
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t a = static_cast<std::uint64_t>(kPhiloxFirst) * c.of[0],
                        b = static_cast<std::uint64_t>(kPhiloxSecond) * c.of[2];
    c = {{static_cast<std::uint32_t>(b >> 32) ^ c.of[1] ^ first, static_cast<std::uint32_t>(b),
          static_cast<std::uint32_t>(a >> 32) ^ c.of[3] ^ second, static_cast<std::uint32_t>(a)}};
    first += kPhiloxFirstStep;
    second += kPhiloxSecondStep;
  }
  return c;
}

}  // namespace trivium::runtime
