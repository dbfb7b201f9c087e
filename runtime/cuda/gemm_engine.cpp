#include "runtime/cuda/gemm_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/communicator.h"
#include "runtime/cuda/check.h"

namespace trivium::runtime::cuda {
namespace {

cudaDataType_t data_type(program::DType type) {
  if (type == program::DType::kBf16) return CUDA_R_16BF;
  return type == program::DType::kFp16 ? CUDA_R_16F : CUDA_R_32F;
}

cudaDataType_t data_type(Codes codes, program::DType type) {
  if (codes == Codes::kNone) return data_type(type);
  return codes == Codes::kE4M3 ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2;
}

std::int64_t size_of(Codes codes, program::DType type) { return codes == Codes::kNone ? size_of(type) : 1; }

/// Only devices for which backend.cpp says so are asked for another than kTensor.
#if CUBLAS_VERSION >= 120900
std::int32_t scale_mode(Scaling scaling) {
  if (scaling == Scaling::kVectors128) return CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
  if (scaling == Scaling::kSquares128) return CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
  if (scaling == Scaling::kVectors32) return CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
  return CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
}
#endif

std::string_view name_of(Scaling scaling) {
  switch (scaling) {
    case Scaling::kVectors128:
      return " by 128";
    case Scaling::kSquares128:
      return " by 128 x 128";
    case Scaling::kVectors32:
      return " by 32";
    default:
      return "";
  }
}

std::string_view name_of(Codes codes) { return codes == Codes::kNone ? "" : codes == Codes::kE4M3 ? " e4m3" : " e5m2"; }

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

std::string_view name_of(Epilogue epilogue) {
  return epilogue == Epilogue::kNone ? "none" : epilogue == Epilogue::kGelu ? "gelu" : "gelu gradient";
}

/// Largest power of two, up to 256, that divides the address and, in a batch, every other one.
unsigned alignment_of(const void* address, std::int64_t stride, program::DType type, Codes codes = Codes::kNone) {
  constexpr std::uintptr_t kMost = 256;
  const auto step = static_cast<std::uintptr_t>(stride * size_of(codes, type));
  const std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(address) | step | kMost;
  return static_cast<unsigned>(bits & (~bits + 1));
}

constexpr int kCandidates = 8;
constexpr std::int64_t kResultAlignment = 256;  // what cudaMalloc gives, and the most that is promised

/// All that an algorithm depends on, in words that mean the same in every build.
std::string shape_of(const Gemm& g) {
  return fmt::format(
      "({}, {}) x ({}, {}) {}{}{}{}{}{} to {}{} a {}{} b {}{} c {} beta {} bias {} batch {} {} {} {} epilogue {} at {} "
      "{} "
      "{} "
      "{} {}",
      g.m, g.k, g.k, g.n, name_of(g.type), name_of(g.a_codes), name_of(g.a_scaling), name_of(g.b_codes),
      name_of(g.b_scaling), g.fast_sums ? " fast" : "", name_of(g.out),
      compute_type(g.type) == CUBLAS_COMPUTE_32F ? "" : " tf32", g.lda, g.a_transposed ? "t" : "", g.ldb,
      g.b_transposed ? "t" : "", g.ldc, g.beta != 0 ? 1 : 0, g.bias != nullptr ? 1 : 0, g.batch, g.stride_a, g.stride_b,
      g.stride_c, name_of(g.epilogue), alignment_of(g.a, g.stride_a, g.type, g.a_codes),
      alignment_of(g.b, g.stride_b, g.type, g.b_codes), alignment_of(g.c, g.stride_c, g.out),
      alignment_of(g.bias, 0, g.out), alignment_of(g.aux, 0, g.out));
}

/// Whether what is issued becomes part of a graph: then nothing can be waited for.
bool is_recorded(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  TRIVIUM_CHECK_CUDA(cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace

/// Row-major C = A B is, column by column, C^T = B^T A^T: cuBLAS gets B first, and every matrix as its transpose.
struct GemmEngine::Plan {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulAlgo_t chosen{};
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
    if (g.a_codes != Codes::kNone) set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(g.fast_sums ? 1 : 0));
#if CUBLAS_VERSION >= 120900
    if (g.b_scaling != Scaling::kTensor) set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, scale_mode(g.b_scaling));
    if (g.a_scaling != Scaling::kTensor) set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, scale_mode(g.a_scaling));
#endif
    first = layout(data_type(g.b_codes, g.type), g.b_transposed ? g.k : g.n, g.b_transposed ? g.n : g.k, g.ldb, g.batch,
                   g.stride_b);
    second = layout(data_type(g.a_codes, g.type), g.a_transposed ? g.m : g.k, g.a_transposed ? g.k : g.m, g.lda,
                    g.batch, g.stride_a);
    result = layout(data_type(g.out), g.n, g.m, g.ldc, g.batch, g.stride_c);
  }
  ~Plan() {
    for (const cublasLtMatrixLayout_t each : {first, second, result}) {
      if (each != nullptr) cublasLtMatrixLayoutDestroy(each);
    }
    if (product != nullptr) cublasLtMatmulDescDestroy(product);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// Operands of the epilogue, and scales, which the description holds.
  void point_at(const Gemm& g) {
    if (g.b_scale != nullptr) set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, g.b_scale);
    if (g.a_scale != nullptr) set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, g.a_scale);
    if (g.bias != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, g.bias);
    if (g.aux != nullptr) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, g.aux);
  }

  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    TRIVIUM_CHECK_CUDA(cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof value));
  }

  static cublasLtMatrixLayout_t layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns, std::int64_t ld,
                                       int batch, std::int64_t stride) {
    cublasLtMatrixLayout_t made = nullptr;
    TRIVIUM_CHECK_CUDA(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows),
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

  /// What cuBLASLt names, best guess first; the status says why there is nothing.
  struct Named {
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    std::vector<cublasLtMatmulHeuristicResult_t> all;
  };
  Named candidates(cublasLtHandle_t handle, const Gemm& g, int most) const {
    cublasLtMatmulPreference_t wish = nullptr;
    TRIVIUM_CHECK_CUDA(cublasLtMatmulPreferenceCreate(&wish));
    const auto ask = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      TRIVIUM_CHECK_CUDA(cublasLtMatmulPreferenceSetAttribute(wish, attribute, &value, sizeof value));
    };
    ask(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(kWorkspaceBytes));
    ask(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, std::uint32_t{alignment_of(g.b, g.stride_b, g.type, g.b_codes)});
    ask(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, std::uint32_t{alignment_of(g.a, g.stride_a, g.type, g.a_codes)});
    ask(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, std::uint32_t{alignment_of(g.c, g.stride_c, g.out)});
    // Algorithms read the bias as wide as they write the result, and have no wish of their own for it.
    ask(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
        std::uint32_t{std::min(
            {alignment_of(g.c, g.stride_c, g.out), alignment_of(g.bias, 0, g.out), alignment_of(g.aux, 0, g.out)})});
    Named named;
    named.all.resize(static_cast<std::size_t>(most));
    int found = 0;
    named.status = cublasLtMatmulAlgoGetHeuristic(handle, product, first, second, result, result, wish, most,
                                                  named.all.data(), &found);
    cublasLtMatmulPreferenceDestroy(wish);
    if (named.status == CUBLAS_STATUS_SUCCESS && found == 0) named.status = CUBLAS_STATUS_NOT_SUPPORTED;
    named.all.resize(named.status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(found) : 0);
    return named;
  }

  /// Takes an algorithm that was chosen before. Throws Aborted where it does not do the product.
  void take(cublasLtHandle_t handle, const ProductChoices::Algorithm& algorithm, const std::string& shape) {
    std::copy(algorithm.begin(), algorithm.end(), std::begin(chosen.data));
    cublasLtMatmulHeuristicResult_t checked{};
    status = cublasLtMatmulAlgoCheck(handle, product, first, second, result, result, &chosen, &checked);
    if (status != CUBLAS_STATUS_SUCCESS || checked.workspaceSize > static_cast<std::size_t>(kWorkspaceBytes))
      throw Aborted(fmt::format("the algorithm that was timed does not do this product: {}", shape));
  }

  void multiply(cublasLtHandle_t handle, const Gemm& g, void* d, const cublasLtMatmulAlgo_t& algorithm,
                cudaStream_t stream, void* workspace) const {
    TRIVIUM_CHECK_CUDA(cublasLtMatmul(handle, product, &g.alpha, g.b, first, g.a, second, &g.beta, g.c, result, d,
                                      result, &algorithm, workspace, static_cast<std::size_t>(kWorkspaceBytes),
                                      stream));
  }
};

GemmEngine::GemmEngine(const DeviceOptions& options, int device, Idling& idling) : options_(options), idling_(idling) {
  TRIVIUM_CHECK_CUDA(cublasLtCreate(&handle_));
  if (options.products.empty() && options.times_products.empty()) return;
  cudaDeviceProp properties{};
  TRIVIUM_CHECK_CUDA(cudaGetDeviceProperties(&properties, device));
  const std::string machine = fmt::format("{}, cuBLASLt {}", properties.name, cublasLtGetVersion());
  if (!options.products.empty()) chosen_ = ProductChoices::read(options.products, machine);
  if (options.times_products.empty()) return;
  timed_.emplace(machine);
  for (cudaEvent_t& each : clock_) TRIVIUM_CHECK_CUDA(cudaEventCreate(&each));
}

GemmEngine::~GemmEngine() {
  plans_.clear();
  for (const cudaEvent_t each : clock_) {
    if (each != nullptr) static_cast<void>(cudaEventDestroy(each));
  }
  cublasLtDestroy(handle_);
}

void GemmEngine::keep_choices() {
  if (std::exchange(has_news_, false)) timed_->write(options_.times_products, options_.rank);
}

double GemmEngine::time_of(Plan& plan, const cublasLtMatmulAlgo_t& candidate, const Gemm& g, void* result,
                           cudaStream_t stream, void* workspace) {
  constexpr int kRuns = 5;
  constexpr double kMicroseconds = 1e3;  // of a millisecond
  double least = std::numeric_limits<double>::infinity();
  plan.multiply(handle_, g, result, candidate, stream, workspace);  // its kernel is loaded
  for (int run = 0; run < kRuns; ++run) {
    TRIVIUM_CHECK_CUDA(cudaEventRecord(clock_[0], stream));
    plan.multiply(handle_, g, result, candidate, stream, workspace);
    TRIVIUM_CHECK_CUDA(cudaEventRecord(clock_[1], stream));
    idling_.await_idle();
    float milliseconds = 0;
    TRIVIUM_CHECK_CUDA(cudaEventElapsedTime(&milliseconds, clock_[0], clock_[1]));
    least = std::min(least, static_cast<double>(milliseconds) * kMicroseconds);
  }
  return least;
}

// Results go to scratch memory instead of the run's own, as do GELU inputs that are written: nobody reads what the
// candidates compute. Where there is no room for them nothing is timed. An exception leaks the scratch memory: freeing
// it would wait for ranks that are gone.
void GemmEngine::time_candidates(Plan& plan, const std::string& shape, const Gemm& g, cudaStream_t stream,
                                 void* workspace) {
  const std::int64_t bytes = ((g.batch - 1) * g.stride_c + (g.m - 1) * g.ldc + g.n) * size_of(g.out);
  const std::int64_t aux_bytes = g.epilogue == Epilogue::kGelu ? g.m * g.n * size_of(g.out) : 0;
  const std::int64_t aux_at = (bytes + kResultAlignment - 1) / kResultAlignment * kResultAlignment;
  idling_.await_idle();
  void* room = nullptr;
  if (cudaMalloc(&room, static_cast<std::size_t>(aux_at + aux_bytes)) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return;
  }
  Gemm beside = g;
  if (aux_bytes > 0) beside.aux = static_cast<std::byte*>(room) + aux_at;
  plan.point_at(beside);
  ProductChoices::Choice fastest;
  const auto candidates = plan.candidates(handle_, g, kCandidates).all;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const cublasLtMatmulAlgo_t& candidate = candidates[i].algo;
    const double microseconds = time_of(plan, candidate, beside, room, stream, workspace);
    if (i == 0) fastest.first_microseconds = microseconds;
    if (i > 0 && microseconds >= fastest.microseconds) continue;
    fastest.microseconds = microseconds;
    std::copy(std::begin(candidate.data), std::end(candidate.data), fastest.algorithm.begin());
  }
  TRIVIUM_CHECK_CUDA(cudaFree(room));
  if (candidates.empty()) return;
  timed_->add(shape, fastest);
  has_news_ = true;
}

GemmEngine::Plan& GemmEngine::plan_for(const Gemm& g, cudaStream_t stream, void* workspace) {
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
                alignment_of(g.a, g.stride_a, g.type, g.a_codes),
                alignment_of(g.b, g.stride_b, g.type, g.b_codes),
                alignment_of(g.c, g.stride_c, g.out),
                alignment_of(g.bias, 0, g.out),
                alignment_of(g.aux, 0, g.out),
                g.a_codes,
                g.b_codes,
                g.fast_sums,
                g.a_scaling,
                g.b_scaling};
  std::unique_ptr<Plan>& plan = plans_[key];
  if (!plan) {
    auto made = std::make_unique<Plan>(g);
    const std::string shape = chosen_ || timed_ ? shape_of(g) : "";
    const ProductChoices::Choice* known = chosen_ ? chosen_->find(shape) : nullptr;
    if (known != nullptr) {
      made->take(handle_, known->algorithm, shape);
    } else {
      const Plan::Named named = made->candidates(handle_, g, 1);
      made->status = named.status;
      if (!named.all.empty()) made->chosen = named.all.front().algo;
      if (timed_ && !named.all.empty() && !is_recorded(stream)) time_candidates(*made, shape, g, stream, workspace);
    }
    plan = std::move(made);
  }
  return *plan;
}

void GemmEngine::run(const Gemm& g, cudaStream_t stream, void* workspace) {
  if (try_run(g, stream, workspace)) return;
  throw Aborted(fmt::format("cuBLAS has no algorithm for a product ({}, {}) x ({}, {}) in {}, batch {}: {}", g.m, g.k,
                            g.k, g.n, name_of(g.type), g.batch,
                            cublasLtGetStatusString(plan_for(g, stream, workspace).status)));
}

bool GemmEngine::try_run(const Gemm& g, cudaStream_t stream, void* workspace) {
  if (g.m == 0 || g.n == 0) return true;
  Plan& plan = plan_for(g, stream, workspace);
  if (plan.status != CUBLAS_STATUS_SUCCESS) return false;
  plan.point_at(g);
  plan.multiply(handle_, g, g.c, plan.chosen, stream, workspace);
  return true;
}

}  // namespace trivium::runtime::cuda
