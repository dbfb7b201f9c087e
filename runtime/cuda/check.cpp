// Apart from the header: nvcc does not compile fmt's.
#include "runtime/cuda/check.h"

#include <fmt/format.h>

#include "runtime/communicator.h"
#include "runtime/cuda/gemm_engine.h"

namespace trivium::runtime::cuda {

void check(cudaError_t code, const char* call, const char* file, int line) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // or the next call would tell of this one
  throw Aborted(fmt::format("{}:{}: {}: {} ({})", file, line, call, cudaGetErrorString(code), cudaGetErrorName(code)));
}

void check(cublasStatus_t code, const char* call, const char* file, int line) {
  if (code != CUBLAS_STATUS_SUCCESS)
    throw Aborted(fmt::format("{}:{}: {}: {}", file, line, call, cublasLtGetStatusString(code)));
}

}  // namespace trivium::runtime::cuda
