// Scales of operands in 8 bits (program/ir/fp8_layout.h), and copies of them where cuBLASLt reads them (cuBLAS 13,
// "Scaling Factors Layouts": at multiples of 16 bytes, and as each kernel says).
#pragma once

#include "runtime/cuda/kernels/numbers.h"

namespace trivium::runtime::cuda {

/// Where scales lie, in numbers of them: an operand is (runs, outer, inner) numbers, of which a product sums over
/// `inner`, and blocks of outer_block x inner_block of a run share a scale.
struct ScalePlaces {
  std::int64_t outer_block = 1, inner_block = 1;
  std::int64_t of_run = 1, of_outer = 0, of_inner = 0;  ///< from a run, or a block, to the next
  TRIVIUM_DEVICE std::int64_t place(std::int64_t run, std::int64_t outer, std::int64_t inner) const {
    return run * of_run + outer / outer_block * of_outer + inner / inner_block * of_inner;
  }
};

TRIVIUM_DEVICE float scale_of(float scale) { return scale; }
/// E8M0; the least that casts give is 2^-126.
TRIVIUM_DEVICE float scale_of(std::uint8_t scale) { return float_of(static_cast<std::uint32_t>(scale) << 23); }

/// A power of two as E8M0.
TRIVIUM_DEVICE std::uint32_t exponent_of(float scale) { return bits_of(scale) >> 23; }
TRIVIUM_DEVICE std::uint32_t exponent_of(std::uint8_t scale) { return scale; }

/// to (runs, outer, padded): a scale a tensor, or a square, a row of them padded to a multiple of four with zeros.
struct PadScales {
  const float* from;
  float* to;
  ScalePlaces places;
  std::int64_t runs, outer, inner, padded;  ///< scales
  std::int64_t count() const { return runs * outer * padded; }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t at = t.block() * t.threads() + t.thread();
    if (at >= runs * outer * padded) return;
    const std::int64_t i = at % padded, row = at / padded;
    const std::int64_t from_row = row / outer * places.of_run + row % outer * places.of_outer;
    to[at] = i < inner ? from[from_row + i * places.of_inner] : 0.0F;
  }
};

/// Words (runs, tiles of 128 outer, tiles of 4 x 32 inner, 128), the scales of an outer number and of 4 x 32 inner in
/// each, E8M0, those past the end 0. Within a tile outer numbers that differ by 32 are neighbours.
struct TileWords {
  static constexpr std::int64_t kOuter = 128, kInner = 4, kNumbers = 32;
  std::uint32_t* to;
  ScalePlaces places;
  std::int64_t runs, outer, inner;  ///< numbers
  constexpr std::int64_t across() const { return (inner + kNumbers * kInner - 1) / (kNumbers * kInner); }
  constexpr std::int64_t of_run() const { return (outer + kOuter - 1) / kOuter * across() * kOuter; }
  constexpr std::int64_t count() const { return runs * of_run(); }
};
template <class Scale>
struct TileScales {
  const Scale* from;
  TileWords tiles;

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t at = t.block() * t.threads() + t.thread();
    if (at >= tiles.count()) return;
    const std::int64_t run = at / tiles.of_run(), tile = at % tiles.of_run() / TileWords::kOuter;
    const std::int64_t within = at % TileWords::kOuter, first = tile % tiles.across() * TileWords::kInner;
    const std::int64_t outer = tile / tiles.across() * TileWords::kOuter + within % 4 * 32 + within / 4;
    std::uint32_t word = 0;
    TRIVIUM_UNROLL
    for (int i = 0; i < TileWords::kInner; ++i) {
      const std::int64_t inner = (first + i) * TileWords::kNumbers;
      if (outer >= tiles.outer || inner >= tiles.inner) continue;
      word |= exponent_of(from[tiles.places.place(run, outer, inner)]) << (i * 8);
    }
    tiles.to[at] = word;
  }
};

}  // namespace trivium::runtime::cuda
