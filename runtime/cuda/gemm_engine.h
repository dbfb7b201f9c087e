// Products of matrices by cuBLASLt.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <map>
#include <memory>
#include <tuple>

#include "runtime/cuda/gemm.h"

namespace trivium::runtime::cuda {

/// As check.h's, for cuBLAS.
void check(cublasStatus_t code, const char* call, const char* file, int line);

/// Chooses an algorithm the first time a shape is asked for, and keeps it. One rank's thread.
class GemmEngine {
 public:
  static constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;  ///< what Hopper's algorithms ask for

  GemmEngine();
  ~GemmEngine();
  GemmEngine(const GemmEngine&) = delete;
  GemmEngine& operator=(const GemmEngine&) = delete;

  /// `workspace`: kWorkspaceBytes of the stream. Throws Aborted, also where no algorithm takes the shape.
  void run(const Gemm& gemm, cudaStream_t stream, void* workspace);
  /// Likewise, but false where no algorithm does.
  bool try_run(const Gemm& gemm, cudaStream_t stream, void* workspace);

 private:
  struct Plan;
  /// All that an algorithm depends on: sizes, types, layouts, and what the addresses are multiples of.
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, program::DType, program::DType, bool, bool,
                         std::int64_t, std::int64_t, std::int64_t, bool, bool, int, std::int64_t, std::int64_t,
                         std::int64_t, Epilogue, unsigned, unsigned, unsigned, unsigned, unsigned>;
  Plan& plan_for(const Gemm& gemm);

  cublasLtHandle_t handle_ = nullptr;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace trivium::runtime::cuda
