// Products of every expert with its rows: x (parts, experts, rows / parts, k), w (experts, k, n), y (parts, experts,
// rows / parts, n); a part is what one rank of the expert group sent. Dropless experts have as many rows of a part as
// were counted.

#include "program/ir/op_views.h"
#include "runtime/cpu/variants/eigen.h"
#include "runtime/cpu/variants/kernels.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

/// Rows of a part by expert, where they are as many as chose it: parts are those of the expert group's ranks, one
/// tensor rank after the other, and counts lie the other way round.
template <class Visit>
static void for_each_counted(const KernelArguments& a, Visit visit) {
  const program::Op& op = *a.op;
  const auto* counts = reinterpret_cast<const std::int32_t*>(a.in[2]);
  const Index rows = op.m * op.experts / op.parts, ranks = a.expert_ranks;
  for (Index part = 0; part < op.parts; ++part) {
    const std::int32_t* own = counts + (part % ranks * (op.parts / ranks) + part / ranks) * op.experts;
    Index first = part * rows;
    for (Index expert = 0; expert < op.experts; first += own[expert++]) visit(expert, first, own[expert]);
  }
}

/// Rows in which no choice is are 0.
template <class T>
static void clear(const KernelArguments& a, Index width) {
  if (a.in[2] != nullptr) Row<T>(output<T>(a, 0), a.op->m * a.op->experts * width).setZero();
}

/// Calls visit(expert, first row within x and y, rows) for every block of rows, parts ascending for each expert.
template <class Visit>
static void for_each_expert(const KernelArguments& a, Visit visit) {
  if (a.in[2] != nullptr) return for_each_counted(a, visit);
  const program::Op& op = *a.op;
  const Index rows = op.m / op.parts;
  for (Index expert = 0; expert < op.experts; ++expert) {
    for (Index part = 0; part < op.parts; ++part) visit(expert, (part * op.experts + expert) * rows, rows);
  }
}

template <class T>
static void expert_matmul(const KernelArguments& a) {
  const Index n = a.op->n, k = a.op->k;
  clear<T>(a, n);
  for_each_expert(a, [&](Index expert, Index first, Index rows) {
    const ConstMatrix<T> x(input<T>(a, 0) + first * k, rows, k), w(input<T>(a, 1) + expert * k * n, k, n);
    Matrix<T>(output<T>(a, 0) + first * n, rows, n).noalias() = x * w;
    scale_product(*a.op, output<T>(a, 0) + first * n, rows * n);
  });
}

template <class T>
static void expert_matmul_dgrad(const KernelArguments& a) {
  const Index n = a.op->n, k = a.op->k;
  clear<T>(a, k);
  for_each_expert(a, [&](Index expert, Index first, Index rows) {
    const ConstMatrix<T> dy(input<T>(a, 0) + first * n, rows, n), w(input<T>(a, 1) + expert * k * n, k, n);
    Matrix<T>(output<T>(a, 0) + first * k, rows, k).noalias() = dy * w.transpose();
    scale_product(*a.op, output<T>(a, 0) + first * k, rows * k);
  });
}

template <class T>
static void expert_matmul_wgrad(const KernelArguments& a) {
  const Index n = a.op->n, k = a.op->k;
  for_each_expert(a, [&](Index expert, Index first, Index rows) {
    const ConstMatrix<T> x(input<T>(a, 0) + first * k, rows, k), dy(input<T>(a, 1) + first * n, rows, n);
    Matrix<T>(output<T>(a, 0) + expert * k * n, k, n).noalias() += x.transpose() * dy;
  });
}

/// With k = 1 the tensor ranks that split an expert have partial sums, and only one of them adds the bias.
[[maybe_unused]] static bool has_bias(const KernelArguments& a) {
  return !program::bias_on_one_tensor_rank(*a.op) || a.expert_tensor_rank == 0;
}

template <class T>
static void expert_bias(const KernelArguments& a) {
  const Index n = a.op->n;
  if (!has_bias(a)) return;
  for_each_expert(a, [&](Index expert, Index first, Index rows) {
    const ConstRow<T> bias(input<T>(a, 1) + expert * n, n);
    for (Index r = first; r < first + rows; ++r) Row<T>(output<T>(a, 0) + r * n, n) += bias;
  });
}

// What a call adds is one sum, as in every other gradient.
template <class T>
static void expert_bias_backward(const KernelArguments& a) {
  const Index n = a.op->n;
  if (!has_bias(a)) return;
  DenseMatrix<T> sums = DenseMatrix<T>::Zero(a.op->experts, n);
  for_each_expert(a, [&](Index expert, Index first, Index rows) {
    sums.row(expert) += ConstMatrix<T>(input<T>(a, 0) + first * n, rows, n).colwise().sum();
  });
  for (Index expert = 0; expert < a.op->experts; ++expert) {
    Row<T>(output<T>(a, 0) + expert * n, n) += sums.row(expert).array();
  }
}

void add_expert_products(KernelTable& table) {
  table.add(program::OpKind::kExpertBias, expert_bias<float>, expert_bias<double>);
  table.add(program::OpKind::kExpertBiasBackward, expert_bias_backward<float>, expert_bias_backward<double>);
  table.add(program::OpKind::kExpertMatmul, expert_matmul<float>, expert_matmul<double>);
  table.add(program::OpKind::kExpertMatmulDgrad, expert_matmul_dgrad<float>, expert_matmul_dgrad<double>);
  table.add(program::OpKind::kExpertMatmulWgrad, expert_matmul_wgrad<float>, expert_matmul_wgrad<double>);
}

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
