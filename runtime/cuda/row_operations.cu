#include "runtime/cuda/launcher.cuh"
#include "runtime/cuda/operations.h"

namespace trivium::runtime::cuda {

template <class T>
DeviceOperation find_row_operation(const program::Op& op) {
  return row_operation<T, Launcher>(op);
}

template DeviceOperation find_row_operation<float>(const program::Op&);
template DeviceOperation find_row_operation<Bf16>(const program::Op&);
template DeviceOperation find_row_operation<Fp16>(const program::Op&);

}  // namespace trivium::runtime::cuda
