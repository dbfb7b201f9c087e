#include "runtime/cuda/launcher.cuh"
#include "runtime/cuda/operations.h"

namespace trivium::runtime::cuda {

template <class T>
DeviceOperation find_attention_operation(const program::Op& op) {
  return attention_operation<T, Launcher>(op);
}

template DeviceOperation find_attention_operation<float>(const program::Op&);
template DeviceOperation find_attention_operation<Bf16>(const program::Op&);
template DeviceOperation find_attention_operation<Fp16>(const program::Op&);

}  // namespace trivium::runtime::cuda
