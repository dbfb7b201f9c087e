// Durations that differ from device to device and from time to time: seeded, and the same whatever is evaluated first.
#pragma once

#include <cstdint>
#include <vector>

namespace trivium::simulator {

/// What one simulate differs in from the nominal one.
struct Variation {
  double jitter = 0;  ///< every step that computes takes (1 + jitter · u) as long, u uniform in [-1, 1)
  std::uint64_t seed = 0;
  std::vector<double> device;  ///< by actor: factor on what it computes; empty: 1
  std::vector<double> link;    ///< by actor: factor on every communication it takes part in; empty: 1
};

/// The stream of factors of one (seed, rank, stream): a counter-based generator, SplitMix64 (Steele, Lea and Flood,
/// "Fast splittable pseudorandom number generators", OOPSLA 2014).
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint32_t rank, std::uint32_t stream)
      : base_(mixed(seed * 0x9e3779b97f4a7c15U + mixed((std::uint64_t{rank} << 8U) | stream))) {}

  /// Uniform in [-1, 1): the `n`-th value, whenever it is asked for.
  double at(std::uint64_t n) const {
    return static_cast<double>(static_cast<std::int64_t>(mixed(base_ + n * 0x9e3779b97f4a7c15U)) >> 11) * 0x1p-52;
  }

 private:
  static std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  std::uint64_t base_;
};

}  // namespace trivium::simulator
