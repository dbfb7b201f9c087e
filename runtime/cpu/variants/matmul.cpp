// Matrix products of the linear layers: y = x w + b and its two gradients.
//   dx = dy w^T,  dw += x^T dy,  db += column sums of dy
// y and dx times the op's scale, where it has one (y then has no b).
// With weight_transposed the matrix is stored (n, k), and w above stands for its transpose.

#include "runtime/cpu/variants/eigen.h"
#include "runtime/cpu/variants/kernels.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

template <class T>
static void matmul(const KernelArguments& a) {
  const Index m = a.op->m, n = a.op->n, k = a.op->k;
  const ConstMatrix<T> x(input<T>(a, 0), m, k);
  const T* w = input<T>(a, 1);
  Matrix<T> y(output<T>(a, 0), m, n);
  if (a.op->weight_transposed) {
    y.noalias() = x * ConstMatrix<T>(w, n, k).transpose();
  } else {
    y.noalias() = x * ConstMatrix<T>(w, k, n);
  }
  scale_product(*a.op, y.data(), m * n);
  if (const T* bias = input<T>(a, 2)) {
    for (Index r = 0; r < m; ++r) Row<T>(y.data() + r * n, n) += ConstRow<T>(bias, n);
  }
}

template <class T>
static void matmul_dgrad(const KernelArguments& a) {
  const Index m = a.op->m, n = a.op->n, k = a.op->k;
  const ConstMatrix<T> dy(input<T>(a, 0), m, n);
  const T* w = input<T>(a, 1);
  Matrix<T> dx(output<T>(a, 0), m, k);
  if (a.op->weight_transposed) {
    dx.noalias() = dy * ConstMatrix<T>(w, n, k);
  } else {
    dx.noalias() = dy * ConstMatrix<T>(w, k, n).transpose();
  }
  scale_product(*a.op, dx.data(), m * k);
}

template <class T>
static void matmul_wgrad(const KernelArguments& a) {
  const Index m = a.op->m, n = a.op->n, k = a.op->k;
  const ConstMatrix<T> x(input<T>(a, 0), m, k);
  const ConstMatrix<T> dy(input<T>(a, 1), m, n);
  T* dw = output<T>(a, 0);
  if (a.op->weight_transposed) {
    Matrix<T>(dw, n, k).noalias() += dy.transpose() * x;
  } else {
    Matrix<T>(dw, k, n).noalias() += x.transpose() * dy;
  }
  if (T* dbias = output<T>(a, 1)) add_column_sums<T, 0>(dy.data(), m, n, dbias);
}

void add_products(KernelTable& table) {
  table.add(program::OpKind::kMatmul, matmul<float>, matmul<double>);
  table.add(program::OpKind::kMatmulDgrad, matmul_dgrad<float>, matmul_dgrad<double>);
  table.add(program::OpKind::kMatmulWgrad, matmul_wgrad<float>, matmul_wgrad<double>);
}

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
