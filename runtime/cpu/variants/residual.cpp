// The residual connection with the bias of the row-split layer before it: y = skip + x + bias; a parallel block has two
// biases. That bias is added here, once, after the partial products of the tensor group have been summed.

#include "runtime/cpu/variants/eigen.h"
#include "runtime/cpu/variants/kernels.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

template <class T>
void bias_residual(const KernelArguments& a) {
  const Index m = a.op->m, n = a.op->n;
  const T* bias = input<T>(a, 1);
  const T* second = input<T>(a, 3);
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
void bias_residual_backward(const KernelArguments& a) {
  for (const std::size_t bias : {0, 1}) {
    if (a.out[bias] != nullptr) add_column_sums<T, 0>(input<T>(a, 0), a.op->m, a.op->n, output<T>(a, bias));
  }
}

template void bias_residual<float>(const KernelArguments&);
template void bias_residual<double>(const KernelArguments&);
template void bias_residual_backward<float>(const KernelArguments&);
template void bias_residual_backward<double>(const KernelArguments&);

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
