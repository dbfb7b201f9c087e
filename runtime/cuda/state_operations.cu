#include "runtime/cuda/launcher.cuh"
#include "runtime/cuda/operations.h"

namespace trivium::runtime::cuda {

template <class T>
DeviceOperation find_state_operation(const program::Op& op) {
  return state_operation<T, Launcher>(op);
}

DeviceOperation find_wire_operation(const program::Op& op) { return wire_operation<Launcher>(op); }

template DeviceOperation find_state_operation<float>(const program::Op&);
template DeviceOperation find_state_operation<Bf16>(const program::Op&);
template DeviceOperation find_state_operation<Fp16>(const program::Op&);

void sum_pairs(Launcher& launcher, const double* gathered, double* pairs, std::int64_t count, int members) {
  run_elements(launcher,
               PairSums{reinterpret_cast<const Double2*>(gathered), reinterpret_cast<Double2*>(pairs), count, members},
               count);
}

}  // namespace trivium::runtime::cuda
