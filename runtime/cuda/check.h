// Calls of CUDA, checked with file and line. gemm_engine.h has the same for cuBLAS: kernels are compiled without it.
#pragma once

#include <cuda_runtime.h>

namespace trivium::runtime::cuda {

/// Throws Aborted, with the call and the place, unless it succeeded.
void check(cudaError_t code, const char* call, const char* file, int line);

}  // namespace trivium::runtime::cuda

#define TRIVIUM_CHECK_CUDA(call) ::trivium::runtime::cuda::check(call, #call, __FILE__, __LINE__)
