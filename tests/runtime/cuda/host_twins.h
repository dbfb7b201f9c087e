// The CUDA backend's ops, run on the host.
#pragma once

#include "runtime/kernel.h"

namespace trivium::runtime::cuda {

/// Runs the op with the kernels that the device has for the precision.
void run_twin(const KernelArguments& a, program::DType precision);

}  // namespace trivium::runtime::cuda
