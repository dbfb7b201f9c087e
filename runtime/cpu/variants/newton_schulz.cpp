// The iterations by which Muon makes the singular values of a matrix alike.

#include "runtime/cpu/variants/eigen.h"
#include "runtime/cpu/variants/kernels.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

// Of an odd polynomial a s + b s^3 + c s^5 that brings any s in (0, 1] near 1 in few steps: after five of them all
// above about 0.01 lie between 0.68 and 1.13 (Jordan et al. 2024, kellerjordan.github.io/posts/muon).
constexpr double kLinear = 3.4445, kCubic = -4.7750, kQuintic = 2.0315;

template <class T>
static void iterate(T* values, T* room, Index m, Index n, Index iterations) {
  Matrix<T> x(values, m, n), product(room, m, n), gram(room + m * n, m, m), square(room + m * n + m * m, m, m);
  const T norm = x.norm();
  if (norm == 0) return;
  x *= 1 / norm;
  for (Index i = 0; i < iterations; ++i) {
    gram.noalias() = x * x.transpose();
    square.noalias() = gram * gram;
    square = static_cast<T>(kCubic) * gram + static_cast<T>(kQuintic) * square;
    product.noalias() = square * x;
    x = static_cast<T>(kLinear) * x + product;
  }
}

void newton_schulz(float* x, float* room, std::int64_t m, std::int64_t n, std::int64_t iterations) {
  iterate(x, room, m, n, iterations);
}
void newton_schulz(double* x, double* room, std::int64_t m, std::int64_t n, std::int64_t iterations) {
  iterate(x, room, m, n, iterations);
}

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
