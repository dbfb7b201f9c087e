// Casts to E4M3 with a scale for every block (program/ir/fp8_layout.h), and back. Scales are the smallest powers of two
// that bring a block's largest number into the format's range, as the CPU backend has them. Codes of numbers that are
// neighbours in a column lie so in memory as well (quantize.h).
#pragma once

#include "runtime/cuda/kernels/quantize.h"
#include "runtime/cuda/kernels/scales.h"

namespace trivium::runtime::cuda {

TRIVIUM_DEVICE void put_scale(float* to, int exponent) { *to = power_of_two(exponent); }
/// E8M0 (OCP Microscaling Formats (MX) Specification, 2023, section 5.4.1).
TRIVIUM_DEVICE void put_scale(std::uint8_t* to, int exponent) { *to = static_cast<std::uint8_t>(exponent + 127); }

/// two_codes of E4M3 where nothing finite overflowed when it was scaled, without a branch. What is infinite has no
/// code: x times 0 makes it no number, and of the rest nothing else. Signs stay.
TRIVIUM_DEVICE std::uint32_t two_scaled_codes(float first, float second) {
#if defined(__CUDA_ARCH__)
  constexpr std::uint32_t kHighBytes = 0x0073, kSigns = 0x8080;
  const std::uint32_t signs = __byte_perm(bits_of(first), bits_of(second), kHighBytes) & kSigns;
  first = __fmaf_rn(first, 0.0F, first), second = __fmaf_rn(second, 0.0F, second);
  return two_codes<Fp8Type::kE4M3>(first, second, true) | signs;
#else
  return two_codes<Fp8Type::kE4M3>(first, second, false);
#endif
}

/// Casts tiles of 128 rows and 128 columns. Blocks over (run, tile of rows, tile of columns). kSide: numbers that share
/// a scale, along a row for codes along rows and along a column for the others; of squares, both ways.
template <class T, class Scale, int kSide, bool kSquare>
struct CastBlocks {
  static constexpr int kThreads = 256, kBlocksAtOnce = 2, kRows = 128, kColumns = 128, kEach = 8,
                       kPack = 8;  // a thread: 8 rows, 8 columns
  static constexpr int kAcross = kColumns / kPack;
  static constexpr int kPitch = kRows / 4 + 1;  ///< words from column to column of the transposed tile
  const T* x;
  std::uint8_t* along_rows;     ///< codes as x lies, or null
  std::uint8_t* along_columns;  ///< of every run (columns, run_rows), rows of it a multiple of 16, or null
  Scale* row_scales;            ///< where along_rows is given
  Scale* column_scales;         ///< likewise
  ScalePlaces of_rows, of_columns;
  RunShape s;
  static int shared_bytes() { return kColumns * kPitch * 4; }
  static constexpr std::int64_t tiles(const RunShape& s) {
    return (s.run_rows + kRows - 1) / kRows * ((s.columns + kColumns - 1) / kColumns);
  }

  /// Of a tile; in 32 bits, as divisions of 64 take a hundred instructions.
  struct Place {
    std::int64_t run;
    int row, column;  ///< where it begins
  };
  template <class Thread>
  TRIVIUM_DEVICE Place place_of(Thread& t) const {
    const auto block = static_cast<std::uint32_t>(t.block()), of_run = static_cast<std::uint32_t>(tiles(s));
    const auto across = static_cast<std::uint32_t>((s.columns + kColumns - 1) / kColumns);
    const std::uint32_t run = block / of_run, tile = block - run * of_run, down = tile / across;
    return {run, static_cast<int>(down) * kRows, static_cast<int>(tile - down * across) * kColumns};
  }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const Place place = place_of(t);
    const std::int64_t run = place.run;
    const int row0 = place.row + t.thread() / kAcross * kEach, column0 = place.column + t.thread() % kAcross * kPack;
    const T* const from = x + (run * s.run_rows + row0) * s.columns + column0;
    float numbers[kEach][kPack];
    TRIVIUM_UNROLL
    for (int i = 0; i < kEach; ++i) {
      // What is not there is read from the first place, and not counted: loads behind branches come one by one.
      const bool is_there = row0 + i < s.run_rows && column0 < s.columns;
      load<kPack>(is_there ? from + i * s.columns : x, numbers[i]);
      TRIVIUM_UNROLL
      for (int j = 0; j < kPack; ++j) numbers[i][j] = is_there ? numbers[i][j] : 0.0F;
    }
    float square = 0;
    if constexpr (kSquare) square = largest_of_square(t, numbers);
    if (along_rows != nullptr) cast_rows(t, numbers, run, row0, column0, square);
    if (along_columns != nullptr) cast_columns(t, numbers, run, row0, column0, square);
  }

  template <class Thread>
  TRIVIUM_DEVICE float largest_of_square(Thread& t, const float (&numbers)[kEach][kPack]) const {
    static_assert(!kSquare || (kSide == kRows && kSide == kColumns));
    float largest = 0;
    TRIVIUM_UNROLL
    for (int i = 0; i < kEach; ++i) {
      TRIVIUM_UNROLL
      for (int j = 0; j < kPack; ++j) largest = Largest()(largest, magnitude(numbers[i][j]));
    }
    return over_block(t, largest, reinterpret_cast<float*>(t.shared()), Largest());
  }

  /// The block of a row is what so many threads side by side have.
  template <class Thread>
  TRIVIUM_DEVICE void cast_rows(Thread& t, const float (&numbers)[kEach][kPack], std::int64_t run, int row0,
                                int column0, float square) const {
    std::uint8_t* const to = along_rows + (run * s.run_rows + row0) * s.columns + column0;
    TRIVIUM_UNROLL
    for (int i = 0; i < kEach; ++i) {
      float largest = square;
      if constexpr (!kSquare) {
        TRIVIUM_UNROLL
        for (int j = 0; j < kPack; ++j) largest = Largest()(largest, magnitude(numbers[i][j]));
        TRIVIUM_UNROLL
        for (int mask = kSide / kPack / 2; mask > 0; mask /= 2) {
          largest = Largest()(largest, t.shuffle_xor(largest, mask));
        }
      }
      if (row0 + i >= s.run_rows || column0 >= s.columns) continue;
      const int exponent = scale_exponent(largest, Fp8Type::kE4M3);
      const bool begins_row = !kSquare || (row0 + i) % kSide == 0;
      if (begins_row && column0 % kSide == 0) {
        put_scale(row_scales + scale_place(of_rows, run, row0 + i, column0), exponent);
      }
      const float inverse = power_of_two(-exponent);
      Pack<std::uint32_t, 2> codes{};
      TRIVIUM_UNROLL
      for (int j = 0; j < kPack; j += 2) {
        codes.of[j / 4] |= two_scaled_codes(numbers[i][j] * inverse, numbers[i][j + 1] * inverse) << (j % 4 * 8);
      }
      *reinterpret_cast<Pack<std::uint32_t, 2>*>(to + i * s.columns) = codes;
    }
  }

  /// The block of a column is what so many threads one below the other have.
  template <class Thread>
  TRIVIUM_DEVICE void cast_columns(Thread& t, const float (&numbers)[kEach][kPack], std::int64_t run, int row0,
                                   int column0, float square) const {
    const int group = t.thread() / kAcross, column = t.thread() % kAcross * kPack;
    auto* const partial = reinterpret_cast<float*>(t.shared());  // (groups, columns)
    float largest[kPack];
    TRIVIUM_UNROLL
    for (int j = 0; j < kPack; ++j) {
      largest[j] = square;
      if constexpr (!kSquare) {
        TRIVIUM_UNROLL
        for (int i = 0; i < kEach; ++i) largest[j] = Largest()(largest[j], magnitude(numbers[i][j]));
        partial[group * kColumns + column + j] = largest[j];
      }
    }
    if constexpr (!kSquare) {
      constexpr int kGroups = kSide / kEach;
      t.sync();
      TRIVIUM_UNROLL
      for (int j = 0; j < kPack; ++j) {
        for (int g = group / kGroups * kGroups; g < group / kGroups * kGroups + kGroups; ++g) {
          largest[j] = Largest()(largest[j], partial[g * kColumns + column + j]);
        }
      }
      t.sync();
    }
    auto* const tile = reinterpret_cast<std::uint32_t*>(t.shared());
    TRIVIUM_UNROLL
    for (int j = 0; j < kPack; ++j) {
      const int exponent = scale_exponent(largest[j], Fp8Type::kE4M3);
      const bool begins_column = !kSquare || (column0 + j) % kSide == 0;
      if (begins_column && row0 % kSide == 0 && row0 < s.run_rows && column0 < s.columns) {
        put_scale(column_scales + scale_place(of_columns, run, column0 + j, row0), exponent);
      }
      const float inverse = power_of_two(-exponent);
      std::uint32_t codes[kEach / 4] = {};
      TRIVIUM_UNROLL
      for (int i = 0; i < kEach; i += 2) {
        codes[i / 4] |= two_scaled_codes(numbers[i][j] * inverse, numbers[i + 1][j] * inverse) << (i % 4 * 8);
      }
      TRIVIUM_UNROLL
      for (int i = 0; i < kEach / 4; ++i) tile[(column + j) * kPitch + group * (kEach / 4) + i] = codes[i];
    }
    t.sync();
    store_columns(t, tile);
  }

  /// A thread 64 rows of a column.
  template <class Thread>
  TRIVIUM_DEVICE void store_columns(Thread& t, const std::uint32_t* tile) const {
    constexpr int kRun = kRows * kColumns / kThreads, kVector = 16;
    const Place place = place_of(t);
    const int column = t.thread() / (kRows / kRun), first = t.thread() % (kRows / kRun) * kRun;
    const std::int64_t row = place.row + first, of_column = place.column + column;
    if (of_column >= s.columns) return;
    std::uint8_t* const to = along_columns + place.run * s.elements() + of_column * s.run_rows + row;
    TRIVIUM_UNROLL
    for (int i = 0; i < kRun; i += kVector) {
      if (row + i >= s.run_rows) return;
      const std::uint32_t* const words = tile + column * kPitch + (first + i) / 4;
      *reinterpret_cast<Pack<std::uint32_t, 4>*>(to + i) = {{words[0], words[1], words[2], words[3]}};
    }
  }

  /// ScalePlaces::place with the sides of the blocks that are cast here, whose divisions are shifts.
  TRIVIUM_DEVICE static std::int64_t scale_place(const ScalePlaces& places, std::int64_t run, int outer, int inner) {
    const int block = kSquare ? outer / kSide : outer;
    return run * places.of_run + block * places.of_outer + inner / kSide * places.of_inner;
  }

  static TRIVIUM_DEVICE float magnitude(float x) {
#if defined(__CUDA_ARCH__)
    return fabsf(x);  // no instruction of its own
#else
    return x < 0 ? -x : x;
#endif
  }
};

/// What codes (runs, outer, inner) stand for, as T, of which bf16 has them exactly but for what is smaller than 2^-133.
template <class T, class Scale>
struct ReadCodes {
  static constexpr int kPack = 8;  ///< that a thread reads, all of one block: inner is a multiple of 16
  const std::uint8_t* codes;
  const Scale* scales;
  T* to;
  ScalePlaces places;
  std::int64_t outer, inner, count;

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t at = (t.block() * t.threads() + t.thread()) * kPack;
    if (at >= count) return;
    // In 32 bits, as divisions of 64 take a hundred instructions.
    const auto pack = static_cast<std::uint32_t>(at / kPack), across = static_cast<std::uint32_t>(inner / kPack);
    const std::uint32_t row = pack / across, in_row = (pack - row * across) * kPack;
    const std::uint32_t run = row / static_cast<std::uint32_t>(outer);
    const std::uint32_t in_run = row - run * static_cast<std::uint32_t>(outer);
    const auto outer_block = static_cast<std::uint32_t>(places.outer_block);
    const auto inner_block = static_cast<std::uint32_t>(places.inner_block);
    const float scale = scale_of(
        scales[run * places.of_run + in_run / outer_block * places.of_outer + in_row / inner_block * places.of_inner]);
    const auto words = *reinterpret_cast<const Pack<std::uint32_t, kPack / 4>*>(codes + at);
    float numbers[kPack];
    TRIVIUM_UNROLL
    for (int i = 0; i < kPack; ++i) {
      const auto code = static_cast<std::uint8_t>(words.of[i / 4] >> (i % 4 * 8));
      numbers[i] = scale * reduction::float_of_fp8(code, Fp8Type::kE4M3);
    }
    store<kPack>(to + at, numbers);
  }
};

}  // namespace trivium::runtime::cuda
