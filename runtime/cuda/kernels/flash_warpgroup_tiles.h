// Tiles for products of whole warpgroups (Hopper's wgmma), which read their second operand, and the first if it is not
// in registers, from shared memory in the layout that the tensor cores ask for: 64 rows of 64 elements, 128 bytes,
// whose eight 16-byte pieces lie in the order of (piece xor row), so that eight rows of a piece, or eight pieces of a
// row, touch all banks once (PTX ISA, "Shared Memory Matrix Layout", 128-byte swizzle). Tiles of 128 columns are two of
// 64, one after the other. All tiles begin at multiples of 1,024 bytes.
#pragma once

#include "runtime/cuda/kernels/flash_tiles.h"

namespace trivium::runtime::cuda {

constexpr int kWarpgroup = 128, kGroupRows = 64, kAcross = 64,
              kPiece = 8;  // threads, rows, and elements of a tile's row
constexpr int kStep = 16;  ///< elements that a product adds up

/// Bytes of a tile in front of the 16 columns, or rows, that a product's step reads.
TRIVIUM_DEVICE constexpr int column_step(int step) {
  return step / (kAcross / kStep) * kGroupRows * kAcross * 2 + step % (kAcross / kStep) * kStep * 2;
}
TRIVIUM_DEVICE constexpr int row_step(int step) { return step * kStep * kAcross * 2; }

/// Where an element lies in a tile.
TRIVIUM_DEVICE constexpr int swizzled(int row, int column) {
  return (column / kAcross * kGroupRows + row) * kAcross + ((column / kPiece ^ row) % kPiece) * kPiece +
         column % kPiece;
}

/// load_ahead into a swizzled tile, by kThreads that follow each other, of which this is `thread`.
template <int D, int kThreads, class T, class Thread>
TRIVIUM_DEVICE void load_swizzled(Thread& t, int thread, T* to, const T* from, std::int64_t stride, std::int64_t valid,
                                  int dim) {
  constexpr int kPieces = D / kPiece, kStride = kThreads / kPieces;  // a multiple of eight rows: their pieces lie alike
  static_assert(kStride % kPiece == 0 && kGroupRows % kStride == 0);
  const int row = thread / kPieces, column = thread % kPieces * kPiece;
  const int left = column < dim ? static_cast<int>(valid < kGroupRows ? valid : kGroupRows) - row : 0;
  const T* at = from + row * stride + column;
  to += swizzled(row, column);
  TRIVIUM_UNROLL
  for (int i = 0; i < kGroupRows; i += kStride) {
    const bool is_there = i < left;
    t.copy_ahead(to + i * kAcross, is_there ? at : from, is_there);
    at += kStride * stride;
  }
}

/// c (64, 64) = A (64, D) B (64, D)^T, under way until it is awaited. A is read from shared memory as well: with
/// operands in registers that stay the same from one product to the next, ptxas 13.0.88 writes others over them.
template <int D, class T, class Thread>
TRIVIUM_DEVICE void begin_rows(Thread& t, float (&c)[8][4], const T* a, const T* b) {
  const auto left = t.tile(a), right = t.tile(b);
  TRIVIUM_UNROLL
  for (int k = 0; k < D / kStep; ++k) {
    t.multiply_group_shared(c, left.after(column_step(k)), right.after(column_step(k)), k > 0, T{});
  }
  t.end_products();
}

/// Accumulators (64, 64) as the first operand of a product, rounded to T.
template <class T>
TRIVIUM_DEVICE void hold_rounded(Held<kAcross>& held, const float (&p)[8][4]) {
  TRIVIUM_UNROLL
  for (int k = 0; k < kAcross / kStep; ++k) {
    TRIVIUM_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float(&from)[4] = p[2 * k + i / 2];
      held.of[k][i] = pair_of<T>(from[i % 2 * 2], from[i % 2 * 2 + 1]);
    }
  }
}

/// c (64, D) += P (64, 64) B (64, D), kAtOnce columns a product, under way until it is awaited.
template <int D, int kAtOnce, class T, class Thread>
TRIVIUM_DEVICE void begin_columns(Thread& t, float (&c)[D / 8][4], const Held<kAcross>& p, const T* b) {
  const auto tile = t.tile(b);
  TRIVIUM_UNROLL
  for (int d = 0; d < D / kAtOnce; ++d) {
    auto& part = *reinterpret_cast<float(*)[kAtOnce / 8][4]>(c[d * kAtOnce / 8]);
    TRIVIUM_UNROLL
    for (int k = 0; k < kAcross / kStep; ++k) {
      t.template multiply_group<true>(part, p.of[k], tile.after(d * kGroupRows * kAtOnce * 2 + row_step(k)), true, T{});
    }
  }
  t.end_products();
}

}  // namespace trivium::runtime::cuda
