// Products of matrices by cuBLASLt.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "runtime/cuda/device_options.h"
#include "runtime/cuda/gemm.h"
#include "runtime/cuda/launcher.h"
#include "runtime/cuda/product_choices.h"

namespace trivium::runtime::cuda {

/// As check.h's, for cuBLAS.
void check(cublasStatus_t code, const char* call, const char* file, int line);

/// Chooses an algorithm the first time a shape is asked for, and keeps it: the one that the options' files have, else
/// the first that cuBLASLt names. Where products are to be timed it also times the next ones, on the operands at hand
/// and with results that nobody reads. One rank's thread.
class GemmEngine {
 public:
  static constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;  ///< what Hopper's algorithms ask for

  /// `device` is the thread's. Throws Aborted where the options' files cannot be used.
  GemmEngine(const DeviceOptions& options, int device, Idling& idling);
  ~GemmEngine();
  GemmEngine(const GemmEngine&) = delete;
  GemmEngine& operator=(const GemmEngine&) = delete;

  /// `workspace`: kWorkspaceBytes of the stream. Throws Aborted, also where no algorithm takes the shape.
  void run(const Gemm& gemm, cudaStream_t stream, void* workspace);
  /// Likewise, but false where no algorithm does.
  bool try_run(const Gemm& gemm, cudaStream_t stream, void* workspace);
  /// Writes what was timed since the last time.
  void keep_choices();

 private:
  struct Plan;
  /// All that an algorithm depends on: sizes, types, layouts, and what the addresses are multiples of.
  using Key =
      std::tuple<std::int64_t, std::int64_t, std::int64_t, program::DType, program::DType, bool, bool, std::int64_t,
                 std::int64_t, std::int64_t, bool, bool, int, std::int64_t, std::int64_t, std::int64_t, Epilogue,
                 unsigned, unsigned, unsigned, unsigned, unsigned, Codes, Codes, bool, Scaling, Scaling>;
  Plan& plan_for(const Gemm& gemm, cudaStream_t stream, void* workspace);
  /// Microseconds of a candidate, the least of several runs; D is `result`.
  double time_of(Plan& plan, const cublasLtMatmulAlgo_t& candidate, const Gemm& gemm, void* result, cudaStream_t stream,
                 void* workspace);
  void time_candidates(Plan& plan, const std::string& shape, const Gemm& gemm, cudaStream_t stream, void* workspace);

  const DeviceOptions& options_;
  Idling& idling_;
  cublasLtHandle_t handle_ = nullptr;
  std::optional<ProductChoices> chosen_, timed_;
  bool has_news_ = false;
  std::array<cudaEvent_t, 2> clock_{};  ///< start and end, where products are timed
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace trivium::runtime::cuda
