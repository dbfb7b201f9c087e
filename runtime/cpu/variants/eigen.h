// Eigen for the kernels that are compiled once per instruction set, and row-major views of their operands.
// TRIVIUM_CPU_VARIANT (v2, v3, v4) names the set. Eigen's inline functions would be merged by the linker across sets,
// and a processor without AVX would then run AVX code; so every set has Eigen under a name of its own.
#pragma once

#define TRIVIUM_PASTE_EXPANDED(a, b) a##b
#define TRIVIUM_PASTE(a, b) TRIVIUM_PASTE_EXPANDED(a, b)
#define Eigen TRIVIUM_PASTE(Eigen_, TRIVIUM_CPU_VARIANT)
#define EIGEN_DONT_PARALLELIZE  // a rank is a thread: its kernels run on that thread alone
#include <Eigen/Core>

#include "runtime/cpu/operands.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

using Index = Eigen::Index;

template <class T>
using DenseMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Matrix = Eigen::Map<DenseMatrix<T>>;
template <class T>
using ConstMatrix = Eigen::Map<const DenseMatrix<T>>;

/// A matrix whose rows lie `stride` elements apart: one head's columns within (T, q|k|v).
template <class T>
using StridedMatrix = Eigen::Map<DenseMatrix<T>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class T>
using ConstStridedMatrix = Eigen::Map<const DenseMatrix<T>, Eigen::Unaligned, Eigen::OuterStride<>>;

/// One row, for elementwise arithmetic.
template <class T>
using DenseRow = Eigen::Array<T, 1, Eigen::Dynamic>;
template <class T>
using Row = Eigen::Map<DenseRow<T>>;
template <class T>
using ConstRow = Eigen::Map<const DenseRow<T>>;

/// What a product gave, times the op's scale where it has one.
template <class T>
static void scale_product(const program::Op& op, T* values, Index count) {
  if (op.score_scale > 0) Row<T>(values, count) *= static_cast<T>(op.score_scale);
}

/// What dropout keeps of a row, scaled: keep has a byte an element, 0 or 1. An expression on both, to be used at once.
template <class T>
static auto kept_of(const T* row, const std::uint8_t* keep, Index count, T scale) {
  return ConstRow<T>(row, count) * (ConstRow<std::uint8_t>(keep, count).template cast<T>() * scale);
}

/// Memory of this thread for `elements` of T, kept between calls; different slots do not overlap. Content undefined.
template <class T, int kSlot>
static T* scratch(Index elements) {
  thread_local DenseRow<T> memory;
  if (memory.size() < elements) memory.resize(elements);
  return memory.data();
}

/// out (n) += column sums of x (rows, n), rows added in ascending order.
template <class T, int kSlot>
static void add_column_sums(const T* x, Index rows, Index n, T* out) {
  Row<T> sum(scratch<T, kSlot>(n), n);
  sum.setZero();
  for (Index r = 0; r < rows; ++r) sum += ConstRow<T>(x + r * n, n);
  Row<T>(out, n) += sum;
}

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
