#include "runtime/cuda/launcher.cuh"
#include "runtime/cuda/operations.h"

namespace trivium::runtime::cuda {

template <class T>
DeviceOperation find_row_operation(const program::Op& op) {
  if (const DeviceOperation coded = coded_operation<T, Launcher>(op)) return coded;
  return row_operation<T, Launcher>(op);
}

template <class T>
EpilogueOperations find_epilogue_operations(const program::Op& activation) {
  return {pair_operation<T, Launcher>(activation), unbiased_activation_backward<T, Launcher>};
}

template EpilogueOperations find_epilogue_operations<Bf16>(const program::Op&);
template EpilogueOperations find_epilogue_operations<Fp16>(const program::Op&);
template DeviceOperation find_row_operation<float>(const program::Op&);
template DeviceOperation find_row_operation<Bf16>(const program::Op&);
template DeviceOperation find_row_operation<Fp16>(const program::Op&);

}  // namespace trivium::runtime::cuda
