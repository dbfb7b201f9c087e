// Casts to 8 bits with a scale for every block: operands to kernels.
#pragma once

#include "program/ir/fp8_layout.h"
#include "runtime/cuda/kernels/launch.h"
#include "runtime/cuda/kernels/quantize_blocks.h"
#include "runtime/cuda/ops_parts.h"
#include "runtime/cuda/ops_rows.h"

namespace trivium::runtime::cuda {

/// Where the scales of what a layout describes lie here: as it says, but for those of a row's 128 numbers, which follow
/// one another along the column, as cuBLASLt reads them (kVectors128).
inline ScalePlaces scale_places(const program::Fp8Layout& layout, bool along_rows) {
  const std::int64_t rows = layout.block_rows_count(), columns = layout.block_columns_count();
  if (!along_rows) return {layout.block_columns, layout.block_rows, rows * columns, 1, columns};
  const bool vectors = layout.block_rows == 1 && layout.scale_bytes == sizeof(float);
  return {layout.block_rows, layout.block_columns, rows * columns, vectors ? 1 : columns, vectors ? rows : 1};
}

template <class T, class Scale, int kSide, bool kSquare, class Launcher>
void cast_blocks(Launcher& l, const KernelArguments& a) {
  using Cast = CastBlocks<T, Scale, kSide, kSquare>;
  Cast cast{};
  cast.x = input<T>(a, 0);
  cast.s = {a.op->parts, a.op->m / a.op->parts, a.op->n};
  for (const bool along_rows : {true, false}) {
    const program::Fp8Layout layout = program::cast_layout(*a.op, along_rows);
    std::byte* const to = a.out[along_rows ? 0 : 1];
    if (to == nullptr) continue;
    (along_rows ? cast.along_rows : cast.along_columns) = reinterpret_cast<std::uint8_t*>(to);
    (along_rows ? cast.row_scales : cast.column_scales) = reinterpret_cast<Scale*>(to + layout.scales_begin());
    (along_rows ? cast.of_rows : cast.of_columns) = scale_places(layout, along_rows);
  }
  l.run(cast, cast.s.runs * Cast::tiles(cast.s), Cast::kThreads, Cast::shared_bytes());
}

template <class T, class Launcher>
void quantize_blocks(Launcher& l, const KernelArguments& a) {
  if (a.op->fp8 == program::Fp8::kMxfp8) {
    cast_blocks<T, std::uint8_t, 32, false>(l, a);
  } else if (a.op->operand == program::Fp8Operand::kWeight) {
    cast_blocks<T, float, 128, true>(l, a);
  } else {
    cast_blocks<T, float, 128, false>(l, a);
  }
  value_sums(l, input<T>(a, 0), a.op->n, a.op->m, a.op->n, output<float>(a, 2));
}

}  // namespace trivium::runtime::cuda
