// SplitMix64's finaliser (Steele, Lea and Flood 2014, Fast splittable pseudorandom number generators, OOPSLA).
#pragma once

#include <cstdint>

namespace trivium::runtime {

/// A bijection of 64 bits that leaves no likeness between neighbours.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace trivium::runtime
