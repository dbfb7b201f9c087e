// A sum over a file's bytes that tells a torn or altered file from a whole one. Not against forgery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace trivium::runtime::checkpoint {

/// FNV-1a (Fowler, Noll, Vo) taken over little-endian words of 64 bits instead of bytes, eight times as fast; the last
/// word is filled up with zeros. `add` may be called with multiples of eight bytes, and once, at the end, with any
/// count.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes) {
    constexpr std::uint64_t kPrime = 1099511628211ULL;
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i, std::min(sizeof word, bytes.size() - i));
      value_ = (value_ ^ word) * kPrime;
      value_ ^= value_ >> 32;  // so that high bytes reach the low ones as well
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037ULL;
};

}  // namespace trivium::runtime::checkpoint
