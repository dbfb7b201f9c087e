// The residual connection with the bias of the row-split layer before it: y = skip + x + bias; a parallel block has two
// biases. That bias is added here, once, after the partial products of the tensor group have been summed. With dropout
// y = skip + mask o (x + bias) / (1 - p), and the mask, a byte an element, is what the backward reads.

#include "runtime/cpu/dropping.h"
#include "runtime/cpu/variants/eigen.h"
#include "runtime/cpu/variants/kernels.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

template <class T>
static void dropped_residual(const KernelArguments& a) {
  const Index n = a.op->n;
  DenseRow<T> branch(n);
  for (Index r = 0; r < a.op->m; ++r) {
    auto* keep = output<std::uint8_t>(a, 1) + r * n;
    draw_token(a, r, keep);
    branch = ConstRow<T>(input<T>(a, 0) + r * n, n);
    for (const std::size_t bias : {1, 3}) {
      if (a.in[bias] != nullptr) branch += ConstRow<T>(input<T>(a, bias), n);
    }
    const ConstRow<T> skip(input<T>(a, 2) + r * n, n);
    Row<T>(output<T>(a, 0) + r * n, n) = skip + kept_of(branch.data(), keep, n, static_cast<T>(a.dropout.scale));
  }
}

template <class T>
static void bias_residual(const KernelArguments& a) {
  const Index m = a.op->m, n = a.op->n;
  const T* bias = input<T>(a, 1);
  const T* second = input<T>(a, 3);
  if (a.dropout.drops()) return dropped_residual<T>(a);
  for (Index r = 0; r < m; ++r) {
    const ConstRow<T> x(input<T>(a, 0) + r * n, n), skip(input<T>(a, 2) + r * n, n);
    Row<T> y(output<T>(a, 0) + r * n, n);
    if (bias != nullptr) {
      y = skip + x + ConstRow<T>(bias, n);
    } else {
      y = skip + x;
    }
    if (second != nullptr) y += ConstRow<T>(second, n);
  }
}

template <class T>
static void bias_residual_backward(const KernelArguments& a) {
  const T* d = input<T>(a, 0);
  if (a.dropout.drops()) {
    const Index elements = a.op->m * a.op->n;
    T* branch = output<T>(a, 2);
    Row<T>(branch, elements) = kept_of(d, input<std::uint8_t>(a, 1), elements, static_cast<T>(a.dropout.scale));
    d = branch;
  }
  for (const std::size_t bias : {0, 1}) {
    if (a.out[bias] != nullptr) add_column_sums<T, 0>(d, a.op->m, a.op->n, output<T>(a, bias));
  }
}

void add_residuals(KernelTable& table) {
  table.add(program::OpKind::kBiasResidual, bias_residual<float>, bias_residual<double>);
  table.add(program::OpKind::kBiasResidualBackward, bias_residual_backward<float>, bias_residual_backward<double>);
}

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
