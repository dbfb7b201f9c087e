// The k largest of gradient + residual, for the wire; what is not sent is the new residual (Stich et al. 2018, arXiv
// 1809.07599, algorithm 1). Equal sizes go by their place, and numbers that are none go first. The k-th largest size is
// found digit by digit from the top; nothing is added atomically, so the same gradients choose the same elements.
#pragma once

#include "runtime/cuda/kernels/numbers.h"

namespace trivium::runtime::cuda {

constexpr int kDigitBits = 4, kDigits = 1 << kDigitBits, kSizeBits = 32;

/// In the order of |x|.
TRIVIUM_DEVICE std::uint32_t size_of_number(float x) {
  constexpr std::uint32_t kInfinity = 0x7f800000U;
  const std::uint32_t bits = bits_of(x) & 0x7fffffffU;
  return bits > kInfinity ? kInfinity : bits;
}

/// An element as it is sent: its value, and its number in the bucket.
struct Sent {
  float value;
  std::uint32_t number;
};

/// What is known of the k-th largest size: its digits so far, and how many of those that share them are to be taken.
struct Threshold {
  std::uint32_t size;
  std::uint32_t unused;
  std::int64_t wanted;
};

/// residual += gradient; where there is no residual the gradient keeps the sign of its zero.
struct AddResidual {
  const float* gradient;
  float* residual;
  std::int64_t count;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = t.block() * t.threads() + t.thread();
    if (i < count) residual[i] = residual[i] == 0 ? gradient[i] : gradient[i] + residual[i];
  }
};

/// partial (blocks, digits) = how many of the elements that share the threshold's upper digits have each next digit.
struct CountDigits {
  const float* values;
  std::int64_t count;
  const Threshold* threshold;
  std::int64_t* partial;
  int shift;  ///< of the digit
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::uint64_t upper = static_cast<std::uint64_t>(threshold->size) >> (shift + kDigitBits);
    std::int64_t counts[kDigits] = {};
    for (std::int64_t i = t.block() * t.threads() + t.thread(); i < count; i += t.blocks() * t.threads()) {
      const std::uint32_t size = size_of_number(values[i]);
      if (static_cast<std::uint64_t>(size) >> (shift + kDigitBits) != upper) continue;
      TRIVIUM_UNROLL
      for (std::uint32_t digit = 0; digit < kDigits; ++digit) counts[digit] += (size >> shift) % kDigits == digit;
    }
    auto* room = reinterpret_cast<std::int64_t*>(t.shared());
    TRIVIUM_UNROLL
    for (int digit = 0; digit < kDigits; ++digit) {
      const std::int64_t sum = over_block(t, counts[digit], room, Sum());
      if (t.thread() == 0) partial[t.block() * kDigits + digit] = sum;
    }
  }
};

/// The threshold's next digit. One block of a warp.
struct ChooseDigit {
  const std::int64_t* partial;
  std::int64_t blocks;
  Threshold* threshold;
  int shift;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* totals = reinterpret_cast<std::int64_t*>(t.shared());
    if (t.thread() < kDigits) {
      std::int64_t total = 0;
      for (std::int64_t block = 0; block < blocks; ++block) total += partial[block * kDigits + t.thread()];
      totals[t.thread()] = total;
    }
    t.sync();
    if (t.thread() != 0) return;
    std::int64_t wanted = threshold->wanted;
    int digit = kDigits - 1;
    for (; digit > 0 && totals[digit] < wanted; --digit) wanted -= totals[digit];
    threshold->size |= static_cast<std::uint32_t>(digit) << shift;
    threshold->wanted = wanted;
  }
};

/// The first threshold: nothing is known. One thread.
struct BeginThreshold {
  Threshold* threshold;
  std::int64_t wanted;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    if (t.thread() == 0) *threshold = {0, 0, wanted};
  }
};

/// How many elements of a run are larger than the threshold, and how many are as large.
struct Above {
  std::int64_t larger, equal;
};

/// A block's part of the elements, and a thread's run within it.
struct Runs {
  std::int64_t count, blocks;
  TRIVIUM_DEVICE std::int64_t begin(std::int64_t block, int thread, int threads) const {
    const std::int64_t first = count * block / blocks, end = count * (block + 1) / blocks;
    return first + (end - first) * thread / threads;
  }
};

TRIVIUM_DEVICE Above above(const float* values, std::int64_t begin, std::int64_t end, std::uint32_t threshold) {
  Above found{0, 0};
  for (std::int64_t i = begin; i < end; ++i) {
    const std::uint32_t size = size_of_number(values[i]);
    found.larger += size > threshold;
    found.equal += size == threshold;
  }
  return found;
}

/// partial (blocks) = Above of every block's part.
struct CountAbove {
  const float* values;
  Runs runs;
  const Threshold* threshold;
  Above* partial;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const Above mine = above(values, runs.begin(t.block(), t.thread(), t.threads()),
                             runs.begin(t.block(), t.thread() + 1, t.threads()), threshold->size);
    auto* room = reinterpret_cast<std::int64_t*>(t.shared());
    const std::int64_t larger = over_block(t, mine.larger, room, Sum()), equal = over_block(t, mine.equal, room, Sum());
    if (t.thread() == 0) partial[t.block()] = {larger, equal};
  }
};

/// Sends what is above the threshold, in its order, and clears it in the residual.
struct SendLargest {
  float* residual;
  Runs runs;
  const Threshold* threshold;
  const Above* partial;
  Sent* wire;
  std::uint32_t first;  ///< number of element 0
  static int shared_bytes(int threads) { return threads * static_cast<int>(sizeof(Above)); }
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* room = reinterpret_cast<Above*>(t.shared());
    const std::int64_t begin = runs.begin(t.block(), t.thread(), t.threads());
    const std::int64_t end = runs.begin(t.block(), t.thread() + 1, t.threads());
    const std::uint32_t size = threshold->size;
    room[t.thread()] = above(residual, begin, end, size);
    t.sync();
    Above before{0, 0};
    for (std::int64_t block = 0; block < t.block(); ++block) {
      before.larger += partial[block].larger;
      before.equal += partial[block].equal;
    }
    for (int thread = 0; thread < t.thread(); ++thread) {
      before.larger += room[thread].larger;
      before.equal += room[thread].equal;
    }
    const std::int64_t wanted = threshold->wanted;
    std::int64_t at = before.larger + (before.equal < wanted ? before.equal : wanted), equal = before.equal;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::uint32_t mine = size_of_number(residual[i]);
      if (mine < size || (mine == size && equal++ >= wanted)) continue;
      wire[at++] = {residual[i], first + static_cast<std::uint32_t>(i)};
      residual[i] = 0;
    }
  }
};

/// gradient += what one member sent, every element once; where there is nothing yet the sign of a zero is kept.
struct AddSent {
  const Sent* wire;
  float* gradient;
  std::int64_t count;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = t.block() * t.threads() + t.thread();
    if (i >= count) return;
    float& sum = gradient[wire[i].number];
    sum = sum == 0 ? wire[i].value : sum + wire[i].value;
  }
};

}  // namespace trivium::runtime::cuda
