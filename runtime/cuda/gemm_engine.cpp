#include "runtime/cuda/gemm_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/communicator.h"
#include "runtime/cuda/check.h"

namespace trivium::runtime::cuda {
namespace {

cudaDataType_t data_type(program::DType type) {
  if (type == program::DType::kBf16) return CUDA_R_16BF;
  return type == program::DType::kFp16 ? CUDA_R_16F : CUDA_R_32F;
}

/// Products of fp32 are exact to 24 bits, or with TRIVIUM_TF32=1 in the environment to the 11 of tensor cores.
cublasComputeType_t compute_type(program::DType type) {
  static const bool fast = [] {
    const char* wish = std::getenv("TRIVIUM_TF32");
    return wish != nullptr && std::string_view(wish) == "1";
  }();
  return fast && type == program::DType::kFp32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

cublasLtEpilogue_t epilogue_of(const Gemm& g) {
  if (g.epilogue == Epilogue::kGeluGradient) return CUBLASLT_EPILOGUE_DGELU;
  if (g.epilogue == Epilogue::kGelu)
    return g.bias != nullptr ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  return g.bias != nullptr ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

/// Largest power of two, up to 256, that divides the address and, in a batch, every other one.
unsigned alignment_of(const void* address, std::int64_t stride, program::DType type) {
  constexpr std::uintptr_t kMost = 256;
  const auto step = static_cast<std::uintptr_t>(stride * size_of(type));
  const std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(address) | step | kMost;
  return static_cast<unsigned>(bits & (~bits + 1));
}

}  // namespace

/// Row-major C = A B is, column by column, C^T = B^T A^T: cuBLAS gets B first, and every matrix as its transpose.
struct GemmEngine::Plan {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulHeuristicResult_t chosen{};
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;  ///< of the choice: without success there is no algorithm

  explicit Plan(const Gemm& g) {
    TRIVIUM_CHECK_CUDA(cublasLtMatmulDescCreate(&product, compute_type(g.type), CUDA_R_32F));
    const cublasOperation_t of_first = g.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t of_second = g.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    set(CUBLASLT_MATMUL_DESC_TRANSA, of_first);
    set(CUBLASLT_MATMUL_DESC_TRANSB, of_second);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(g));
    if (g.bias != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(g.out));
    if (g.epilogue != Epilogue::kNone) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, g.n);
    point_at(g);
    first = layout(g.type, g.b_transposed ? g.k : g.n, g.b_transposed ? g.n : g.k, g.ldb, g.batch, g.stride_b);
    second = layout(g.type, g.a_transposed ? g.m : g.k, g.a_transposed ? g.k : g.m, g.lda, g.batch, g.stride_a);
    result = layout(g.out, g.n, g.m, g.ldc, g.batch, g.stride_c);
  }
  ~Plan() {
    for (const cublasLtMatrixLayout_t each : {first, second, result}) {
      if (each != nullptr) cublasLtMatrixLayoutDestroy(each);
    }
    if (product != nullptr) cublasLtMatmulDescDestroy(product);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// Operands of the epilogue, which the description holds.
  void point_at(const Gemm& g) {
    if (g.bias != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, g.bias);
    if (g.aux != nullptr) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, g.aux);
  }

  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    TRIVIUM_CHECK_CUDA(cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof value));
  }

  static cublasLtMatrixLayout_t layout(program::DType type, std::int64_t rows, std::int64_t columns, std::int64_t ld,
                                       int batch, std::int64_t stride) {
    cublasLtMatrixLayout_t made = nullptr;
    TRIVIUM_CHECK_CUDA(cublasLtMatrixLayoutCreate(&made, data_type(type), static_cast<std::uint64_t>(rows),
                                                  static_cast<std::uint64_t>(columns), ld));
    if (batch > 1) {
      const std::int32_t count = batch;
      TRIVIUM_CHECK_CUDA(
          cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
      TRIVIUM_CHECK_CUDA(
          cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
    }
    return made;
  }

  void choose(cublasLtHandle_t handle, const Gemm& g) {
    cublasLtMatmulPreference_t wish = nullptr;
    TRIVIUM_CHECK_CUDA(cublasLtMatmulPreferenceCreate(&wish));
    const auto ask = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      TRIVIUM_CHECK_CUDA(cublasLtMatmulPreferenceSetAttribute(wish, attribute, &value, sizeof value));
    };
    ask(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(kWorkspaceBytes));
    ask(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, std::uint32_t{alignment_of(g.b, g.stride_b, g.type)});
    ask(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, std::uint32_t{alignment_of(g.a, g.stride_a, g.type)});
    ask(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, std::uint32_t{alignment_of(g.c, g.stride_c, g.out)});
    // Algorithms read the bias as wide as they write the result, and have no wish of their own for it.
    ask(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
        std::uint32_t{std::min(
            {alignment_of(g.c, g.stride_c, g.out), alignment_of(g.bias, 0, g.out), alignment_of(g.aux, 0, g.out)})});
    int found = 0;
    status = cublasLtMatmulAlgoGetHeuristic(handle, product, first, second, result, result, wish, 1, &chosen, &found);
    cublasLtMatmulPreferenceDestroy(wish);
    if (status == CUBLAS_STATUS_SUCCESS && found == 0) status = CUBLAS_STATUS_NOT_SUPPORTED;
  }
};

GemmEngine::GemmEngine() { TRIVIUM_CHECK_CUDA(cublasLtCreate(&handle_)); }

GemmEngine::~GemmEngine() {
  plans_.clear();
  cublasLtDestroy(handle_);
}

GemmEngine::Plan& GemmEngine::plan_for(const Gemm& g) {
  const Key key{g.m,
                g.n,
                g.k,
                g.type,
                g.out,
                g.a_transposed,
                g.b_transposed,
                g.lda,
                g.ldb,
                g.ldc,
                g.beta != 0,
                g.bias != nullptr,
                g.batch,
                g.stride_a,
                g.stride_b,
                g.stride_c,
                g.epilogue,
                alignment_of(g.a, g.stride_a, g.type),
                alignment_of(g.b, g.stride_b, g.type),
                alignment_of(g.c, g.stride_c, g.out),
                alignment_of(g.bias, 0, g.out),
                alignment_of(g.aux, 0, g.out)};
  std::unique_ptr<Plan>& plan = plans_[key];
  if (!plan) {
    auto made = std::make_unique<Plan>(g);
    made->choose(handle_, g);
    plan = std::move(made);
  }
  return *plan;
}

void GemmEngine::run(const Gemm& g, cudaStream_t stream, void* workspace) {
  if (try_run(g, stream, workspace)) return;
  throw Aborted(fmt::format("cuBLAS has no algorithm for a product ({}, {}) x ({}, {}) in {}, batch {}: {}", g.m, g.k,
                            g.k, g.n, name_of(g.type), g.batch, cublasLtGetStatusString(plan_for(g).status)));
}

bool GemmEngine::try_run(const Gemm& g, cudaStream_t stream, void* workspace) {
  if (g.m == 0 || g.n == 0) return true;
  Plan& plan = plan_for(g);
  if (plan.status != CUBLAS_STATUS_SUCCESS) return false;
  plan.point_at(g);
  TRIVIUM_CHECK_CUDA(cublasLtMatmul(handle_, plan.product, &g.alpha, g.b, plan.first, g.a, plan.second, &g.beta, g.c,
                                    plan.result, g.c, plan.result, &plan.chosen.algo, workspace,
                                    static_cast<std::size_t>(kWorkspaceBytes), stream));
  return true;
}

}  // namespace trivium::runtime::cuda
