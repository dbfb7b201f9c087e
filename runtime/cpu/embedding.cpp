// Look-ups: token embedding (its rows split over the tensor group), learned positions, and plain addition.

#include <cstring>

#include "runtime/cpu/operands.h"
#include "runtime/cpu/plain_kernels.h"

namespace trivium::runtime::cpu {

// This rank holds rows [tensor_rank * k, +k) of the table; a token of another rank gives zeros here, and the sum over
// the tensor group is the whole embedding (Shoeybi et al. 2019, arXiv 1909.08053, section 3).
template <class T>
void embedding(const KernelArguments& a) {
  const std::int64_t n = a.op->n, k = a.op->k;
  const std::int32_t* ids = input<std::int32_t>(a, 0);
  for (std::int64_t r = 0; r < a.op->m; ++r) {
    T* y = output<T>(a, 0) + r * n;
    const std::int64_t row = ids[r] - a.tensor_rank * k;
    const auto bytes = static_cast<std::size_t>(n) * sizeof(T);
    if (row >= 0 && row < k) {
      std::memcpy(y, input<T>(a, 1) + row * n, bytes);
    } else {
      std::memset(y, 0, bytes);
    }
  }
}

template <class T>
void embedding_backward(const KernelArguments& a) {
  const std::int64_t n = a.op->n, k = a.op->k;
  const std::int32_t* ids = input<std::int32_t>(a, 0);
  for (std::int64_t r = 0; r < a.op->m; ++r) {
    const std::int64_t row = ids[r] - a.tensor_rank * k;
    if (row < 0 || row >= k) continue;
    const T* dy = input<T>(a, 1) + r * n;
    T* dtable = output<T>(a, 0) + row * n;
    for (std::int64_t j = 0; j < n; ++j) dtable[j] += dy[j];
  }
}

template <class T>
void position(const KernelArguments& a) {
  const std::int64_t n = a.op->n;
  for (std::int64_t r = 0; r < a.op->m; ++r) {
    const T* x = input<T>(a, 0) + r * n;
    const T* row = input<T>(a, 1) + position_of(a, r, a.op->k) * n;
    T* y = output<T>(a, 0) + r * n;
    for (std::int64_t j = 0; j < n; ++j) y[j] = x[j] + row[j];
  }
}

template <class T>
void position_backward(const KernelArguments& a) {
  const std::int64_t n = a.op->n;
  for (std::int64_t r = 0; r < a.op->m; ++r) {
    const T* dy = input<T>(a, 0) + r * n;
    T* dtable = output<T>(a, 0) + position_of(a, r, a.op->k) * n;
    for (std::int64_t j = 0; j < n; ++j) dtable[j] += dy[j];
  }
}

template <class T>
void add(const KernelArguments& a) {
  const T* x = input<T>(a, 0);
  T* y = output<T>(a, 0);
  for (std::int64_t i = 0; i < a.op->elements; ++i) y[i] += x[i];
}

template void embedding<float>(const KernelArguments&);
template void embedding<double>(const KernelArguments&);
template void embedding_backward<float>(const KernelArguments&);
template void embedding_backward<double>(const KernelArguments&);
template void position<float>(const KernelArguments&);
template void position<double>(const KernelArguments&);
template void position_backward<float>(const KernelArguments&);
template void position_backward<double>(const KernelArguments&);
template void add<float>(const KernelArguments&);
template void add<double>(const KernelArguments&);

}  // namespace trivium::runtime::cpu
