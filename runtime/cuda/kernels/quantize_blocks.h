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

/// Casts tiles of 128 rows and 128 columns. Blocks over (run, tile of rows, tile of columns). kSide: numbers that share
/// a scale, along a row for codes along rows and along a column for the others; of squares, both ways.
template <class T, class Scale, int kSide, bool kSquare>
struct CastBlocks {
  static constexpr int kThreads = 256, kRows = 128, kColumns = 128, kEach = 8,
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

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t run = t.block() / tiles(s), place = t.block() % tiles(s);
    const std::int64_t across = (s.columns + kColumns - 1) / kColumns;
    const std::int64_t row0 = place / across * kRows + t.thread() / kAcross * kEach;
    const std::int64_t column0 = place % across * kColumns + t.thread() % kAcross * kPack;
    float numbers[kEach][kPack];
    TRIVIUM_UNROLL
    for (int i = 0; i < kEach; ++i) {
      const bool is_there = row0 + i < s.run_rows && column0 < s.columns;
      if (is_there) load<kPack>(x + (run * s.run_rows + row0 + i) * s.columns + column0, numbers[i]);
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
  TRIVIUM_DEVICE void cast_rows(Thread& t, const float (&numbers)[kEach][kPack], std::int64_t run, std::int64_t row0,
                                std::int64_t column0, float square) const {
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
      if (begins_row && column0 % kSide == 0) put_scale(row_scales + of_rows.place(run, row0 + i, column0), exponent);
      const float inverse = power_of_two(-exponent);
      Pack<std::uint32_t, 2> codes{};
      TRIVIUM_UNROLL
      for (int j = 0; j < kPack; j += 2) {
        codes.of[j / 4] |= two_codes<Fp8Type::kE4M3>(numbers[i][j] * inverse, numbers[i][j + 1] * inverse,
                                                     bits_of(largest) < 0x7f800000U)
                           << (j % 4 * 8);
      }
      *reinterpret_cast<Pack<std::uint32_t, 2>*>(along_rows + (run * s.run_rows + row0 + i) * s.columns + column0) =
          codes;
    }
  }

  /// The block of a column is what so many threads one below the other have.
  template <class Thread>
  TRIVIUM_DEVICE void cast_columns(Thread& t, const float (&numbers)[kEach][kPack], std::int64_t run, std::int64_t row0,
                                   std::int64_t column0, float square) const {
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
        put_scale(column_scales + of_columns.place(run, column0 + j, row0), exponent);
      }
      const float inverse = power_of_two(-exponent);
      std::uint32_t codes[kEach / 4] = {};
      TRIVIUM_UNROLL
      for (int i = 0; i < kEach; i += 2) {
        codes[i / 4] |= two_codes<Fp8Type::kE4M3>(numbers[i][j] * inverse, numbers[i + 1][j] * inverse,
                                                  bits_of(largest[j]) < 0x7f800000U)
                        << (i % 4 * 8);
      }
      TRIVIUM_UNROLL
      for (int i = 0; i < kEach / 4; ++i) tile[(column + j) * kPitch + group * (kEach / 4) + i] = codes[i];
    }
    t.sync();
    store_columns(t, tile, run);
  }

  /// A thread 64 rows of a column.
  template <class Thread>
  TRIVIUM_DEVICE void store_columns(Thread& t, const std::uint32_t* tile, std::int64_t run) const {
    constexpr int kRun = kRows * kColumns / kThreads, kVector = 16;
    const std::int64_t place = t.block() % tiles(s), across = (s.columns + kColumns - 1) / kColumns;
    const int column = t.thread() / (kRows / kRun), first = t.thread() % (kRows / kRun) * kRun;
    const std::int64_t row = place / across * kRows + first, of_column = place % across * kColumns + column;
    if (of_column >= s.columns) return;
    std::uint8_t* const to = along_columns + run * s.elements() + of_column * s.run_rows + row;
    TRIVIUM_UNROLL
    for (int i = 0; i < kRun; i += kVector) {
      if (row + i >= s.run_rows) return;
      const std::uint32_t* const words = tile + column * kPitch + (first + i) / 4;
      *reinterpret_cast<Pack<std::uint32_t, 4>*>(to + i) = {{words[0], words[1], words[2], words[3]}};
    }
  }

  static TRIVIUM_DEVICE float magnitude(float x) { return x < 0 ? -x : x; }
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
    const std::int64_t row = at / inner;
    const float scale = scale_of(scales[places.place(row / outer, row % outer, at % inner)]);
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
