// The rank-ordered reduction, in blocks that stay in the first-level cache.
// Reading a whole block before writing it is what lets a result be one of the parts.
#include "runtime/reduction/reduce.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/reduction/half.h"

namespace trivium::runtime::reduction {
namespace {

using program::DType;
using program::Reduction;

constexpr std::int64_t kBlock = 512;      // elements; 16-byte pairs in two arrays still fit 32 KiB
constexpr std::int64_t kSliceGrain = 64;  // elements; a cache line even of single bytes

/// A value that is summed as it is stored.
template <class Number>
struct Plain {
  using Stored = Number;
  using Wide = Number;
  static Wide widen(Stored value) { return value; }
  static Stored narrow(Wide value) { return value; }
};

/// Integers are summed in 64 bits and cut to their width: wrapping, without undefined overflow.
template <class Number>
struct Integer {
  using Stored = Number;
  using Wide = std::int64_t;
  static Wide widen(Stored value) { return value; }
  static Stored narrow(Wide value) { return static_cast<Stored>(value); }
};

struct Bf16 {
  using Stored = std::uint16_t;
  using Wide = float;
  static Wide widen(Stored bits) { return float_of_bf16(bits); }
  static Stored narrow(Wide value) { return bf16_of_float(value); }
};

struct Fp16 {
  using Stored = std::uint16_t;
  using Wide = float;
  static Wide widen(Stored bits) { return float_of_fp16(bits); }
  static Stored narrow(Wide value) { return fp16_of_float(value); }
};

/// The unevaluated sum hi + lo, lo below half a unit in the last place of hi.
struct Pair {
  double hi, lo;
};

struct Sum {
  template <class Number>
  Number operator()(Number a, Number b) const {
    return a + b;
  }
};

struct Max {
  template <class Number>
  Number operator()(Number a, Number b) const {
    return (b > a || b != b) ? b : a;
  }
};

struct PairSum {
  Pair operator()(Pair a, Pair b) const {
    // Knuth's two-sum: high + error == a.hi + b.hi exactly, for any magnitudes (Shewchuk 1997, theorem 7).
    const double high = a.hi + b.hi;
    const double of_b = high - a.hi;
    const double error = (a.hi - (high - of_b)) + (b.hi - of_b);
    const double low = error + (a.lo + b.lo);
    const double hi = high + low;
    return {hi, low - (hi - high)};
  }
};

template <class Stored>
Stored load(const std::byte* part, std::int64_t index) {
  Stored value;
  std::memcpy(&value, part + index * static_cast<std::int64_t>(sizeof(Stored)), sizeof(Stored));
  return value;
}

template <class Format, class Combine>
void reduce_as(std::span<const std::byte* const> parts, std::span<std::byte* const> results, std::int64_t count,
               Combine combine) {
  using Stored = typename Format::Stored;
  std::array<typename Format::Wide, kBlock> wide;
  std::array<Stored, kBlock> narrow;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, count - begin);
    const std::int64_t offset = begin * static_cast<std::int64_t>(sizeof(Stored));
    const std::byte* const first = parts[0] + offset;
    for (std::int64_t i = 0; i < size; ++i) wide[static_cast<std::size_t>(i)] = Format::widen(load<Stored>(first, i));
    for (const std::byte* const part : parts.subspan(1)) {
      for (std::int64_t i = 0; i < size; ++i) {
        auto& sum = wide[static_cast<std::size_t>(i)];
        sum = combine(sum, Format::widen(load<Stored>(part + offset, i)));
      }
    }
    for (std::int64_t i = 0; i < size; ++i) {
      narrow[static_cast<std::size_t>(i)] = Format::narrow(wide[static_cast<std::size_t>(i)]);
    }
    for (std::byte* const result : results) {
      std::memcpy(result + offset, narrow.data(), static_cast<std::size_t>(size) * sizeof(Stored));
    }
  }
}

}  // namespace

std::int64_t element_bytes(DType type, Reduction how) {
  return how == Reduction::kPairSum ? static_cast<std::int64_t>(sizeof(Pair)) : program::size_of(type);
}

void reduce_in_order(std::span<const std::byte* const> parts, std::span<std::byte* const> results, std::int64_t count,
                     DType type, Reduction how) {
  if (how == Reduction::kPairSum) return reduce_as<Plain<Pair>>(parts, results, count, PairSum{});
  const auto reduce = [&]<class Format>(Format) {
    if (how == Reduction::kMax) return reduce_as<Format>(parts, results, count, Max{});
    return reduce_as<Format>(parts, results, count, Sum{});
  };
  switch (type) {
    case DType::kFp64:
      return reduce(Plain<double>{});
    case DType::kFp32:
      return reduce(Plain<float>{});
    case DType::kBf16:
      return reduce(Bf16{});
    case DType::kFp16:
      return reduce(Fp16{});
    case DType::kInt32:
      return reduce(Integer<std::int32_t>{});
    case DType::kUint8:
      return reduce(Integer<std::uint8_t>{});
  }
}

Slice slice_of(std::int64_t count, int members, int index) {
  const std::int64_t even = (count + members - 1) / members;
  const std::int64_t grains = (even + kSliceGrain - 1) / kSliceGrain;
  const std::int64_t begin = std::min(count, index * grains * kSliceGrain);
  return {begin, std::min(count, begin + grains * kSliceGrain)};
}

}  // namespace trivium::runtime::reduction
