// Casts to 8 bits and products of what they give, on the CPU backend and on the emulation. Codes along columns lie
// transposed there, run by run, and the scales of vectors of 128 numbers of a row likewise.
#pragma once

#include <algorithm>
#include <cmath>

#include "program/ir/fp8_layout.h"
#include "runtime/cpu/plain_kernels.h"
#include "tests/runtime/cuda/emulated_call.h"

namespace trivium::runtime::cuda {

/// (runs, rows, columns)
struct RunSizes {
  std::int64_t runs = 1, rows = 0, columns = 0;
};

/// `bytes` with matrices (rows, columns) of `size` bytes an element, from `begin` on, transposed.
inline void transpose(std::vector<double>& bytes, std::int64_t begin, std::int64_t runs, std::int64_t rows,
                      std::int64_t columns, std::int64_t size) {
  const std::vector<double> before = bytes;
  for (std::int64_t run = 0; run < runs; ++run) {
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const std::int64_t to = i % columns * rows + i / columns, first = begin + run * rows * columns * size;
      for (std::int64_t byte = 0; byte < size; ++byte) {
        bytes[static_cast<std::size_t>(first + to * size + byte)] =
            before[static_cast<std::size_t>(first + i * size + byte)];
      }
    }
  }
}

/// Bytes of codes and scales of the CPU backend's as they lie on a GPU.
inline std::vector<double> as_on_gpu(const program::Fp8Layout& layout, bool along_rows, std::vector<double> bytes) {
  if (!along_rows) transpose(bytes, 0, layout.runs, layout.run_rows, layout.columns, 1);
  const bool vectors_of_128 = along_rows && layout.block_rows == 1 && layout.scale_bytes == 4;
  if (vectors_of_128) {
    transpose(bytes, layout.scales_begin(), layout.runs, layout.block_rows_count(), layout.block_columns_count(), 4);
  }
  return bytes;
}

inline EmulatedCall cast_of(program::Fp8 recipe, program::Fp8Operand operand, const RunSizes& s,
                            const std::vector<double>& x) {
  EmulatedCall call(program::OpKind::kQuantize, s.runs * s.rows, s.columns, 0);
  call.op.fp8 = recipe, call.op.operand = operand, call.op.parts = static_cast<std::int32_t>(s.runs);
  call.with_in(0, Form::kTyped, x);
  for (const bool along_rows : {true, false}) {
    const auto bytes = static_cast<std::size_t>(program::cast_layout(call.op, along_rows).bytes());
    call.with_out(along_rows ? 0 : 1, Form::kBytes, std::vector<double>(bytes, 17));
  }
  return call;
}

inline void expect_casts_of(program::Fp8 recipe, program::Fp8Operand operand, const RunSizes& s,
                            const std::vector<double>& x, bool sums) {
  EmulatedCall call = cast_of(recipe, operand, s, x);
  if (sums) call.with_out(2, Form::kWide, uniform(s.columns, 3));
  const auto wanted = call.on_cpu(program::DType::kBf16), got = call.on_emulation(program::DType::kBf16);
  for (const bool along_rows : {true, false}) {
    const std::size_t way = along_rows ? 0 : 1;
    EXPECT_EQ(got[way], as_on_gpu(program::cast_layout(call.op, along_rows), along_rows, wanted[way]));
  }
  for (std::size_t i = 0; i < wanted[2].size(); ++i) {
    EXPECT_NEAR(got[2][i], wanted[2][i], 1e-4 * (1 + std::abs(wanted[2][i])));
  }
}

/// An operand of a product as the CPU backend casts it, either way.
struct Cast {
  std::array<std::vector<double>, 2> bytes, on_gpu;
};
/// Numbers grow from run to run, and within one from 16 to 16 of a row and from row to row, so that no two blocks have
/// scales of the same size.
inline Cast cast_by_cpu_of(program::Fp8 recipe, program::Fp8Operand operand, const RunSizes& s, unsigned seed) {
  std::vector<double> x = uniform(s.runs * s.rows * s.columns, seed);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i), row = at / s.columns;
    x[i] = std::ldexp(x[i], static_cast<int>(row / s.rows + at % s.columns / 16 % 3 + row % s.rows / 16 % 5));
  }
  const EmulatedCall call = cast_of(recipe, operand, s, x);
  const auto results = call.on_cpu(program::DType::kBf16);
  Cast cast;
  for (const bool along_rows : {true, false}) {
    const std::size_t way = along_rows ? 0 : 1;
    cast.bytes[way] = results[way];
    cast.on_gpu[way] = as_on_gpu(program::cast_layout(call.op, along_rows), along_rows, results[way]);
  }
  return cast;
}

/// y = x w, dx = dy w^T, or dw = x^T dy, of what the casts stand for.
inline void expect_product_of(program::Fp8 recipe, EmulatedCall call, const Cast& first, const Cast& second) {
  using program::OpKind;
  const bool forward = call.op.kind == OpKind::kMatmul || call.op.kind == OpKind::kExpertMatmul;
  const bool wgrad = call.op.kind == OpKind::kMatmulWgrad || call.op.kind == OpKind::kExpertMatmulWgrad;
  const std::size_t ways[] = {wgrad ? 1U : 0U, forward || wgrad ? 1U : 0U};
  call.op.fp8 = recipe;
  EmulatedCall there = call;
  call.with_in(0, Form::kBytes, first.bytes[ways[0]]).with_in(1, Form::kBytes, second.bytes[ways[1]]);
  there.with_in(0, Form::kBytes, first.on_gpu[ways[0]]).with_in(1, Form::kBytes, second.on_gpu[ways[1]]);
  const auto wanted = call.run(
      program::DType::kFp32, program::DType::kBf16,
      [](const KernelArguments& a, const EmulatedCall::Sizes&) { cpu::fp8_product(program::DType::kFp32)(a); });
  const auto got = there.on_emulation(program::DType::kBf16);
  double largest = 0;
  for (const double x : wanted[0]) largest = std::max(largest, std::abs(x));
  ASSERT_EQ(got[0].size(), wanted[0].size());
  // bf16 results are rounded to 2^-9; sums on tensor cores that keep fewer bits differ by less.
  for (std::size_t i = 0; i < wanted[0].size(); ++i) ASSERT_NEAR(got[0][i], wanted[0][i], 0.004 * largest) << i;
}

}  // namespace trivium::runtime::cuda
