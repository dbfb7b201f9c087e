// Gradients in 16 bits on their way between replicas.
#include <cstdint>

#include "runtime/cpu/operands.h"
#include "runtime/cpu/plain_kernels.h"
#include "runtime/reduction/half.h"

namespace trivium::runtime::cpu {

// To fp32 first: what an fp64 run rounds twice, an fp32 run rounds once.
template <class T>
void compress(const KernelArguments& a) {
  const T* gradient = input<T>(a, 0);
  std::uint16_t* wire = output<std::uint16_t>(a, 0);
  for (std::int64_t i = 0; i < a.op->elements; ++i) wire[i] = reduction::fp16_of_float(static_cast<float>(gradient[i]));
}

template <class T>
void decompress(const KernelArguments& a) {
  const std::uint16_t* wire = input<std::uint16_t>(a, 0);
  T* gradient = output<T>(a, 0);
  for (std::int64_t i = 0; i < a.op->elements; ++i) gradient[i] = static_cast<T>(reduction::float_of_fp16(wire[i]));
}

template void compress<float>(const KernelArguments&);
template void compress<double>(const KernelArguments&);
template void decompress<float>(const KernelArguments&);
template void decompress<double>(const KernelArguments&);

}  // namespace trivium::runtime::cpu
