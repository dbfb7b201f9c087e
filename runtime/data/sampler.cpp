// A pseudo-random permutation of the windows that needs no memory and can start anywhere: resuming and replanning are
// exact.
#include <bit>
#include <cassert>
#include <stdexcept>

#include "runtime/data/corpus.h"

namespace trivium::runtime::data {
namespace {

// Luby and Rackoff (1988) need four rounds of good random functions; two more make up for a plain mixer.
constexpr int kRounds = 6;

/// Finaliser of SplitMix64 (Steele, Lea and Flood 2014): every input bit flips half of the output bits.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// One-to-one on [0, size). A Feistel network permutes the next even power of two; walking its cycle until the value
/// falls back into [0, size) (Black and Rogaway 2002) keeps it one-to-one there. Takes fewer than four steps on
/// average.
std::uint64_t permuted(std::uint64_t value, std::uint64_t size, std::uint64_t key) {
  const int half_bits = (static_cast<int>(std::bit_width(size - 1)) + 1) / 2;
  const std::uint64_t half_mask = (std::uint64_t{1} << half_bits) - 1;
  do {
    std::uint64_t left = value >> half_bits, right = value & half_mask;
    for (int round = 0; round < kRounds; ++round) {
      const std::uint64_t next = left ^ (mix(mix(key + static_cast<std::uint64_t>(round)) ^ right) & half_mask);
      left = right;
      right = next;
    }
    value = left << half_bits | right;
  } while (value >= size);
  return value;
}

}  // namespace

Sampler::Sampler(std::int64_t tokens, std::int64_t sequence, std::uint64_t seed) : sequence_(sequence), seed_(seed) {
  if (sequence < 1 || tokens < sequence + 1)
    throw std::invalid_argument("a sampler needs at least sequence + 1 tokens");
  windows_ = (tokens - 1) / sequence;  // each window also reads the first token of the next, as its last label
}

std::int64_t Sampler::start_of(std::int64_t sample) const {
  assert(sample >= 0);
  const auto epoch = static_cast<std::uint64_t>(sample / windows_);
  const auto index = static_cast<std::uint64_t>(sample % windows_);
  const std::uint64_t key = mix(mix(seed_) + epoch);
  return static_cast<std::int64_t>(permuted(index, static_cast<std::uint64_t>(windows_), key)) * sequence_;
}

std::int64_t Sampler::samples_per_epoch() const { return windows_; }

}  // namespace trivium::runtime::data
