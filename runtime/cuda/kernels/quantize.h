// Casts to 8 bits with a scale for every run of rows (program/ir/fp8_layout.h), the smallest power of two that brings
// the run's largest number into the format's range, as the CPU backend has them. Codes of numbers that are neighbours
// in a column lie so in memory as well: a run is transposed, since cuBLASLt's products in 8 bits read both operands
// along what they sum over.
#pragma once

#include "runtime/cuda/kernels/numbers.h"
#include "runtime/reduction/fp8.h"

namespace trivium::runtime::cuda {

using reduction::Fp8Type;

/// (rows, columns) in runs of equal size; columns are a multiple of 8.
struct RunShape {
  std::int64_t runs, run_rows, columns;
  constexpr std::int64_t elements() const { return run_rows * columns; }
};

/// partial (runs, parts): the largest of |x| that are numbers. A block a partial result.
template <class T>
struct LargestOfRuns {
  static constexpr int kThreads = 256, kPack = 8;
  const T* x;
  float* partial;
  RunShape s;
  std::int64_t parts;

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t run = t.block() / parts, part = t.block() % parts, packs = s.elements() / kPack;
    const T* from = x + run * s.elements();
    float most = 0;
    for (std::int64_t i = part * kThreads + t.thread(); i < packs; i += parts * kThreads) {
      float each[kPack];
      load<kPack>(from + i * kPack, each);
      TRIVIUM_UNROLL
      for (int j = 0; j < kPack; ++j) most = Largest()(most, each[j] < 0 ? -each[j] : each[j]);
    }
    most = over_block(t, most, reinterpret_cast<float*>(t.shared()), Largest());
    if (t.thread() == 0) partial[t.block()] = most;
  }
};

/// Exponent of the scale of numbers of which this is the largest. Both formats' largest are 1.75 times a power of two.
TRIVIUM_DEVICE int scale_exponent(float largest, Fp8Type type) {
  constexpr std::uint32_t kMantissa = 0x7fffff, kThreeQuarters = 0x600000;
  constexpr int kLeast = -126, kMost = 127;
  const std::uint32_t bits = bits_of(largest);
  const int of_largest = static_cast<int>(bits >> 23) - 127, of_format = type == Fp8Type::kE4M3 ? 8 : 15;
  if (bits == 0 || of_largest == 128) return 0;
  const int exponent = of_largest - of_format + ((bits & kMantissa) > kThreeQuarters ? 1 : 0);
  return exponent < kLeast ? kLeast : exponent > kMost ? kMost : exponent;
}

/// 2^exponent, for -127 to 127.
TRIVIUM_DEVICE float power_of_two(int exponent) {
  constexpr std::uint32_t kHalfOfLeast = 0x400000;  // 2^-127 is no normal number
  return float_of(exponent < -126 ? kHalfOfLeast : static_cast<std::uint32_t>(exponent + 127) << 23);
}

/// What overflowed when it was scaled is the largest number, as satfinite has it.
TRIVIUM_DEVICE float finite(float x) {
  constexpr float kMost = 3.4028234663852886e38F;
  return x > kMost ? kMost : x < -kMost ? -kMost : x;
}

/// Two codes in a word's low half, the first in its low byte. `plain`: neither was infinite.
template <Fp8Type kType>
TRIVIUM_DEVICE std::uint32_t two_codes(float first, float second, bool plain) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  if (plain) {
    std::uint16_t codes;
    if constexpr (kType == Fp8Type::kE4M3) {
      asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(second), "f"(first));
    } else {
      asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(second), "f"(first));
    }
    return codes;
  }
#endif
  if (plain) first = finite(first), second = finite(second);
  return reduction::fp8_of_float(first, kType) | static_cast<std::uint32_t>(reduction::fp8_of_float(second, kType))
                                                     << 8;
}

/// Casts tiles of 128 rows and 64 columns. Blocks over (run, tile of rows, tile of columns). `kByHistory`: by the
/// largest number of steps before, `known`, so that x is read once.
template <class T, Fp8Type kType, bool kByHistory = false>
struct CastRuns {
  static constexpr int kThreads = 256, kRows = 128, kColumns = 64, kEach = 4, kPack = 8;  // a thread: 4 rows, 8 columns
  static constexpr int kPitch = kRows / 4 + 1;  ///< words from column to column of the transposed tile
  const T* x;
  const float* partial;         ///< of LargestOfRuns
  std::uint8_t* along_rows;     ///< codes as x lies, or null
  std::uint8_t* along_columns;  ///< of every run (columns, run_rows), rows of it a multiple of 16, or null
  float* row_scales;            ///< (runs), where along_rows is given
  float* column_scales;         ///< likewise
  RunShape s;
  std::int64_t parts;
  const float* known = nullptr;
  float* raised = nullptr;  ///< to the largest number of all runs, or null
  static int shared_bytes() { return kColumns * kPitch * 4 + kWarp * 8; }
  static constexpr std::int64_t tiles(const RunShape& s) {
    return (s.run_rows + kRows - 1) / kRows * ((s.columns + kColumns - 1) / kColumns);
  }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* const tile = reinterpret_cast<std::uint32_t*>(t.shared());
    const std::int64_t run = t.block() / tiles(s), place = t.block() % tiles(s);
    const std::int64_t across = (s.columns + kColumns - 1) / kColumns;
    const std::int64_t row0 = place / across * kRows, column0 = place % across * kColumns;
    auto* const room = reinterpret_cast<float*>(tile + kColumns * kPitch);
    float largest = 0, most = 0;
    if constexpr (kByHistory) {
      largest = *known;
    } else {
      for (std::int64_t i = t.thread(); i < parts; i += kThreads) {
        largest = Largest()(largest, partial[run * parts + i]);
      }
      most = largest = over_block(t, largest, room, Largest());
    }
    const int exponent = scale_exponent(largest, kType);
    if (place == 0 && t.thread() == 0) {
      if (along_rows != nullptr) row_scales[run] = power_of_two(exponent);
      if (along_columns != nullptr) column_scales[run] = power_of_two(exponent);
    }
    const float inverse = power_of_two(-exponent);
    constexpr std::uint32_t kInfinite = 0x7f800000;
    bool plain = bits_of(largest) < kInfinite;
    const int group = t.thread() / (kColumns / kPack), column = t.thread() % (kColumns / kPack) * kPack;
    std::uint32_t codes[kEach][kPack / 4] = {};  // by row, four columns a word
    TRIVIUM_UNROLL
    for (int i = 0; i < kEach; ++i) {
      const std::int64_t row = row0 + group * kEach + i;
      if (row >= s.run_rows || column0 + column >= s.columns) continue;
      const std::int64_t at = (run * s.run_rows + row) * s.columns + column0 + column;
      float each[kPack];
      load<kPack>(x + at, each);
      if constexpr (kByHistory) {
        float here = 0;
        TRIVIUM_UNROLL
        for (int j = 0; j < kPack; ++j) here = Largest()(here, each[j] < 0 ? -each[j] : each[j]);
        plain = bits_of(here) < kInfinite;
        most = Largest()(most, here);
      }
      TRIVIUM_UNROLL
      for (int j = 0; j < kPack; ++j) {
        const bool is_number = kByHistory && !plain && finite(each[j]) == each[j];
        each[j] = is_number ? finite(each[j] * inverse) : each[j] * inverse;
      }
      TRIVIUM_UNROLL
      for (int j = 0; j < kPack; j += 2) {
        codes[i][j / 4] |= two_codes<kType>(each[j], each[j + 1], plain) << (j % 4 * 8);
      }
      if (along_rows != nullptr) {
        *reinterpret_cast<Pack<std::uint32_t, 2>*>(along_rows + at) = {{codes[i][0], codes[i][1]}};
      }
    }
    if constexpr (kByHistory) most = over_block(t, most, room, Largest());
    if (raised != nullptr && t.thread() == 0) t.raise(raised, most);
    if (along_columns == nullptr) return;  // all of the block
    TRIVIUM_UNROLL
    for (int j = 0; j < kPack; ++j) {
      std::uint32_t of_column = 0;
      TRIVIUM_UNROLL
      for (int i = 0; i < kEach; ++i) of_column |= (codes[i][j / 4] >> (j % 4 * 8) & 0xffU) << (i * 8);
      tile[(column + j) * kPitch + group] = of_column;
    }
    t.sync();
    store_columns(t, tile, run, row0, column0);
  }

  /// A thread 32 rows of a column.
  template <class Thread>
  TRIVIUM_DEVICE void store_columns(Thread& t, const std::uint32_t* tile, std::int64_t run, std::int64_t row0,
                                    std::int64_t column0) const {
    constexpr int kRun = kRows * kColumns / kThreads, kVector = 16;
    const int column = t.thread() / (kRows / kRun), first = t.thread() % (kRows / kRun) * kRun;
    if (column0 + column >= s.columns) return;
    std::uint8_t* const to = along_columns + run * s.elements() + (column0 + column) * s.run_rows + row0 + first;
    TRIVIUM_UNROLL
    for (int i = 0; i < kRun; i += kVector) {
      if (row0 + first + i >= s.run_rows) return;
      const std::uint32_t* const words = tile + column * kPitch + (first + i) / 4;
      *reinterpret_cast<Pack<std::uint32_t, 4>*>(to + i) = {{words[0], words[1], words[2], words[3]}};
    }
  }
};

/// The largest numbers of a step become part of the history (program::AmaxHistory). A block a site.
struct RecordLargest {
  static constexpr int kThreads = 256;
  const float* step;  ///< (sites)
  float* of_window;   ///< (sites)
  float* window;      ///< (steps, sites)
  std::int64_t sites, steps, place;

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t site = t.block();
    constexpr std::uint32_t kInfinite = 0x7f800000;
    const float here = bits_of(step[site]) < kInfinite ? step[site] : 0;
    float largest = here;
    for (std::int64_t i = t.thread(); i < steps; i += kThreads) {
      if (i != place) largest = Largest()(largest, window[i * sites + site]);
    }
    largest = over_block(t, largest, reinterpret_cast<float*>(t.shared()), Largest());
    if (t.thread() != 0) return;
    window[place * sites + site] = here;
    of_window[site] = largest;
  }
};

}  // namespace trivium::runtime::cuda
