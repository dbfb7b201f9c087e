// How numbers in 8 bits and fewer lie in a buffer: codes row by row, then the scales of blocks.
#pragma once

#include <cstdint>

#include "program/ir/op.h"

namespace trivium::program {

/// Blocks of rows x columns that share a scale. Blocks begin anew at every run of rows, and what is left over at the
/// end of a run or of a row is a block of its own.
struct Fp8Layout {
  std::int64_t runs = 1, run_rows = 0, columns = 0;
  std::int64_t block_rows = 1, block_columns = 1;
  std::int64_t code_bits = 8, scale_bytes = 4;

  std::int64_t rows() const { return runs * run_rows; }
  std::int64_t block_columns_count() const { return (columns + block_columns - 1) / block_columns; }
  std::int64_t block_rows_count() const { return (run_rows + block_rows - 1) / block_rows; }
  std::int64_t blocks() const { return runs * block_rows_count() * block_columns_count(); }
  /// Where the scales begin, in bytes: aligned to their own size.
  std::int64_t scales_begin() const { return (rows() * columns * code_bits / 8 + 3) / 4 * 4; }
  std::int64_t bytes() const { return scales_begin() + blocks() * scale_bytes; }
};

/// `along_rows`: scales of numbers that are neighbours in a row, for a product that sums over columns; else in a
/// column.
Fp8Layout fp8_layout(Fp8 recipe, Fp8Operand operand, bool along_rows, std::int64_t runs, std::int64_t rows,
                     std::int64_t columns);

/// Recipe kDelayed: the largest numbers of the operands of a chunk's products, (rows, sites) in fp32, a site for every
/// operand that is cast.
struct AmaxHistory {
  static constexpr std::int64_t kThisStep = 0;   ///< row: of the step at hand, as far as it has come
  static constexpr std::int64_t kOfWindow = 1;   ///< row: the largest of those that follow; 0: none is known
  static constexpr std::int64_t kFirstStep = 2;  ///< rows: step s of a training at s modulo their number
  static constexpr std::int64_t rows(std::int64_t steps) { return kFirstStep + steps; }
};

/// Of what a kQuantize op writes: out[0] along its rows, out[1] along its columns.
Fp8Layout cast_layout(const Op& op, bool along_rows);

/// Of operand 0 or 1 of a product whose `fp8` is set.
Fp8Layout operand_layout(const Op& product, int operand);

/// Whether the operand is one of gradients.
Fp8Operand operand_of(const Op& product, int operand);

}  // namespace trivium::program
