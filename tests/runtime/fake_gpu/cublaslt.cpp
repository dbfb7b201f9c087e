// cuBLASLt over the fake GPU: descriptions are checked as its header documents them, products computed column by column
// as they are described.
#include <cublasLt.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numbers>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/cuda/kernels/numbers.h"
#include "runtime/reduction/fp8.h"
#include "tests/runtime/cuda/scale_layouts.h"
#include "tests/runtime/fake_gpu/machine.h"

namespace {

using trivium::fake_gpu::Machine;
using trivium::runtime::cuda::Bf16;
using trivium::runtime::cuda::Fp16;
using trivium::runtime::cuda::scale_at;
using trivium::runtime::cuda::Scaling;

[[noreturn]] void refuse(const std::string& what) { Machine::get().refuse("cuBLASLt: " + what); }

struct Layout {
  cudaDataType type = CUDA_R_32F;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t ld = 0, stride = 0;
  std::int32_t batch = 1;
};

struct Description {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType scale = CUDA_R_32F;
  std::int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  void* aux = nullptr;
  std::int64_t aux_ld = 0;
  std::int32_t bias_type = -1, aux_type = -1;  // -1: that of D
  const void* scale_a = nullptr;               // of operands in 8 bits
  const void* scale_b = nullptr;
  std::int32_t mode_a = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F, mode_b = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  std::int8_t fast = 0;

  bool has_bias() const { return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS; }
  bool has_aux() const {
    return epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
           epilogue == CUBLASLT_EPILOGUE_DGELU;
  }
};

struct Preference {
  std::uint64_t workspace = 0;
  std::array<std::uint32_t, 4> alignment{256, 256, 256, 256};  // A, B, C, D
};

struct Product {
  Description description;
  std::array<Layout, 4> layouts;
};

/// What an algorithm is, as it may be kept in a file: its number, what it was chosen for, what it was promised.
struct Algorithm {
  std::uint64_t number = 0, product = 0, alignments = 0, workspace = 0;

  std::uint32_t alignment(std::size_t operand) const { return alignments >> (16 * operand) & 0xffffU; }
};

/// Seconds of each algorithm that every product has, the one that is named first being the first: FAKE_GPU_PRODUCTS,
/// numbers between commas. By default there is one, which takes none.
const std::vector<double>& algorithm_seconds() {
  static const std::vector<double> all = [] {
    const char* given = std::getenv("FAKE_GPU_PRODUCTS");
    std::vector<double> seconds;
    std::istringstream words(given == nullptr ? "0" : given);
    for (std::string word; std::getline(words, word, ',');) seconds.push_back(std::stod(word));
    return seconds;
  }();
  return all;
}

template <class Opaque>
struct ValueOf;
template <>
struct ValueOf<cublasLtMatmulDescOpaque_t> {
  using type = Description;
};
template <>
struct ValueOf<cublasLtMatrixLayoutOpaque_t> {
  using type = Layout;
};
template <>
struct ValueOf<cublasLtMatmulPreferenceOpaque_t> {
  using type = Preference;
};

/// What a handle refers to: its first word is the address.
template <class Opaque>
typename ValueOf<std::remove_const_t<Opaque>>::type& behind(Opaque* handle) {
  if (handle == nullptr || handle->data[0] == 0) refuse("a handle of nothing");
  return *reinterpret_cast<typename ValueOf<std::remove_const_t<Opaque>>::type*>(handle->data[0]);
}

template <class Opaque>
void make(Opaque** handle, typename ValueOf<Opaque>::type value) {
  *handle = new Opaque{};
  (*handle)->data[0] = reinterpret_cast<std::uint64_t>(new typename ValueOf<Opaque>::type(value));
}

template <class Opaque>
cublasStatus_t destroy(Opaque* handle) {
  delete &behind(handle);
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

template <class Value>
void take(Value& to, const void* from, std::size_t size) {
  if (size != sizeof to) refuse(fmt::format("an attribute of {} bytes told with {}", sizeof to, size));
  std::memcpy(&to, from, sizeof to);
}

bool is_coded(cudaDataType type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

std::size_t size_of(cudaDataType type) {
  if (type == CUDA_R_32F) return 4;
  if (is_coded(type)) return 1;
  if (type != CUDA_R_16BF && type != CUDA_R_16F) refuse("a type it does not know");
  return 2;
}

float read(const void* from, std::int64_t i, cudaDataType type) {
  using trivium::runtime::reduction::Fp8Type;
  if (is_coded(type)) {
    return trivium::runtime::reduction::float_of_fp8(static_cast<const std::uint8_t*>(from)[i],
                                                     type == CUDA_R_8F_E4M3 ? Fp8Type::kE4M3 : Fp8Type::kE5M2);
  }
  if (type == CUDA_R_16BF) return trivium::runtime::cuda::widen(static_cast<const Bf16*>(from)[i]);
  if (type == CUDA_R_16F) return trivium::runtime::cuda::widen(static_cast<const Fp16*>(from)[i]);
  return static_cast<const float*>(from)[i];
}

void write(void* to, std::int64_t i, cudaDataType type, float value) {
  using trivium::runtime::cuda::narrow;
  if (type == CUDA_R_16BF) {
    static_cast<Bf16*>(to)[i] = narrow<Bf16>(value);
  } else if (type == CUDA_R_16F) {
    static_cast<Fp16*>(to)[i] = narrow<Fp16>(value);
  } else {
    static_cast<float*>(to)[i] = value;
  }
}

struct Sizes {
  std::int64_t m = 0, n = 0, k = 0;
};

Scaling scaling_of(std::int32_t mode) {
  switch (mode) {
    case CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F:
      return Scaling::kTensor;
    case CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F:
      return Scaling::kVectors128;
    case CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F:
      return Scaling::kSquares128;
    case CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0:
      return Scaling::kVectors32;
    default:
      refuse("a mode of scales, which it does not know");
  }
}

/// cuBLAS 13, "Narrow Precision Data Types Usage": scales of 128 numbers on sm_90, M and N multiples of four; of 32
/// from sm_100 on, of whole blocks. They sum as precisely as they can.
bool takes_scales(const Description& d, const Sizes& s) {
  const Scaling a = scaling_of(d.mode_a), b = scaling_of(d.mode_b);
  const int sm = Machine::get().compute_capability();
  if (!trivium::runtime::cuda::go_together(a, b)) return false;
  if (a == Scaling::kTensor || d.fast != 0) return a == Scaling::kTensor;
  if (a == Scaling::kVectors32) return sm >= 100 && s.k % 32 == 0;
  return sm == 90 && s.m % 4 == 0 && s.n % 4 == 0;
}

/// cuBLAS 13, "cublasLtMatmul": operands in 8 bits are A transposed and B as it is, of rows of whole 16 bytes, not both
/// E5M2, and have scales in device memory.
bool takes_codes(const Product& c, const Sizes& s) {
  const auto& [a, b, in, out] = c.layouts;
  const Description& d = c.description;
  const auto reads = [&](const void* scales, std::int32_t mode, std::int64_t outer) {
    const auto bytes = trivium::runtime::cuda::bytes_of_scales(scaling_of(mode), outer, s.k);
    if (!Machine::get().on_device(scales, static_cast<std::size_t>(bytes)))
      refuse("scales that are not within device memory");
    return reinterpret_cast<std::uintptr_t>(scales) % 16 == 0;
  };
  if (!reads(d.scale_a, d.mode_a, s.m) || !reads(d.scale_b, d.mode_b, s.n)) return false;
  return is_coded(a.type) && is_coded(b.type) && !(a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2) &&
         d.transpose_a == CUBLAS_OP_T && d.transpose_b == CUBLAS_OP_N && a.ld % 16 == 0 && b.ld % 16 == 0 &&
         s.m % 16 == 0 && a.batch == 1 && !d.has_aux() && takes_scales(d, s);
}

/// Sizes of D = op(A) op(B); nothing where the layouts do not fit each other or no algorithm takes them.
std::optional<Sizes> sizes_of(const Product& c) {
  const auto& [a, b, in, out] = c.layouts;
  const bool ta = c.description.transpose_a == CUBLAS_OP_T, tb = c.description.transpose_b == CUBLAS_OP_T;
  const auto whole = [](std::uint64_t n) { return static_cast<std::int64_t>(n); };
  const Sizes s{whole(ta ? a.columns : a.rows), whole(tb ? b.rows : b.columns), whole(ta ? a.rows : a.columns)};
  if (whole(tb ? b.columns : b.rows) != s.k) refuse("inner sizes of A and B differ");
  for (const Layout& d : {in, out}) {
    if (whole(d.rows) != s.m || whole(d.columns) != s.n) refuse("C or D of another size than the product");
  }
  for (const Layout& each : c.layouts) {
    if (each.ld < whole(each.rows)) refuse(fmt::format("leading dimension {} of {} rows", each.ld, each.rows));
    if (each.batch != a.batch) refuse("batches of different counts");
  }
  const bool codes = is_coded(a.type) || is_coded(b.type);
  if ((!codes && a.type != b.type) || in.type != out.type) refuse("A and B, or C and D, of different types");
  if (codes && !takes_codes(c, s)) return std::nullopt;
  if (!codes && out.type != a.type && out.type != CUDA_R_32F) return std::nullopt;
  const Description& d = c.description;
  if (d.scale != CUDA_R_32F) return std::nullopt;
  if (d.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a.type != CUDA_R_32F) return std::nullopt;
  if (d.has_bias() && d.bias_type != -1 && d.bias_type != static_cast<std::int32_t>(out.type)) return std::nullopt;
  if (d.has_aux() && (d.aux_ld % 8 != 0 || d.aux_ld < s.m || d.aux == nullptr || out.type == CUDA_R_32F))
    return std::nullopt;
  return s;
}

void check_extent(const char* what, const void* memory, const Layout& layout, std::uint32_t alignment) {
  const std::int64_t last =
      static_cast<std::int64_t>(layout.columns - 1) * layout.ld + static_cast<std::int64_t>(layout.rows);
  const std::int64_t elements = last + (layout.batch - 1) * std::max<std::int64_t>(layout.stride, 0);
  if (!Machine::get().on_device(memory, static_cast<std::size_t>(elements) * size_of(layout.type))) {
    refuse(fmt::format("{} of {} rows, {} columns, leading dimension {}, batch {} is not within device memory", what,
                       layout.rows, layout.columns, layout.ld, layout.batch));
  }
  if (reinterpret_cast<std::uintptr_t>(memory) % alignment != 0) {
    refuse(fmt::format("{} is not aligned to the {} bytes that its algorithm was chosen for", what, alignment));
  }
}

/// u (1 + tanh g) / 2 with g = sqrt(2/pi) (u + 0.044715 u^3); the slope of it.
float gelu(float u) {
  const float g = std::sqrt(2 / std::numbers::pi_v<float>) * (u + 0.044715F * u * u * u);
  return u / 2 * (1 + std::tanh(g));
}
float gelu_slope(float u) {
  const float root = std::sqrt(2 / std::numbers::pi_v<float>), t = std::tanh(root * (u + 0.044715F * u * u * u));
  return (1 + t) / 2 + u / 2 * (1 - t * t) * root * (1 + 3 * 0.044715F * u * u);
}

struct Operands {
  float alpha = 1, beta = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
};

/// Algorithms other than the first add up in reverse, so that different bits show which one it was.
void compute(const Product& choice, const Sizes& s, const Operands& o, bool from_behind) {
  const auto& [a, b, c, d] = choice.layouts;
  const Description& how = choice.description;
  const bool ta = how.transpose_a == CUBLAS_OP_T, tb = how.transpose_b == CUBLAS_OP_T;
  for (std::int64_t batch = 0; batch < a.batch; ++batch) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      for (std::int64_t i = 0; i < s.m; ++i) {
        float sum = 0;
        for (std::int64_t step = 0; step < s.k; ++step) {
          const std::int64_t k = from_behind ? s.k - 1 - step : step;
          float product = read(o.a, batch * a.stride + (ta ? i * a.ld + k : k * a.ld + i), a.type) *
                          read(o.b, batch * b.stride + (tb ? k * b.ld + j : j * b.ld + k), b.type);
          if (is_coded(a.type)) {
            product *= scale_at(scaling_of(how.mode_a), how.scale_a, i, s.m, k, s.k) *
                       scale_at(scaling_of(how.mode_b), how.scale_b, j, s.n, k, s.k);
          }
          sum += product;
        }
        float value = o.alpha * sum;
        if (o.beta != 0) value += o.beta * read(o.c, batch * c.stride + j * c.ld + i, c.type);
        if (how.has_bias()) value += read(how.bias, i, d.type);
        const std::int64_t in_aux = j * how.aux_ld + i;
        if (how.epilogue == CUBLASLT_EPILOGUE_DGELU) {
          value *= gelu_slope(read(how.aux, in_aux, d.type));
        } else if (how.has_aux()) {
          write(how.aux, in_aux, d.type, value);
          value = gelu(value);
        }
        write(o.d, batch * d.stride + j * d.ld + i, d.type, value);
      }
    }
  }
}

/// A number of all that an algorithm was chosen for.
std::uint64_t number_of(const Product& p) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  const auto add = [&](auto value) {
    for (int shift = 0; shift < 64; shift += 8)
      hash = (hash ^ (static_cast<std::uint64_t>(value) >> shift & 0xffU)) * 1099511628211ULL;
  };
  add(p.description.compute), add(p.description.epilogue);
  add(p.description.transpose_a), add(p.description.transpose_b), add(p.description.fast);
  add(p.description.mode_a), add(p.description.mode_b);
  for (const Layout& l : p.layouts) add(l.type), add(l.rows), add(l.columns), add(l.ld), add(l.stride), add(l.batch);
  return hash;
}

cublasLtMatmulAlgo_t kept(const Algorithm& a) {
  cublasLtMatmulAlgo_t kept{};
  std::memcpy(kept.data, &a, sizeof a);
  return kept;
}

Algorithm algorithm_of(const cublasLtMatmulAlgo_t& kept) {
  Algorithm a;
  std::memcpy(&a, kept.data, sizeof a);
  return a;
}

}  // namespace

extern "C" {

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS         ? "CUBLAS_STATUS_SUCCESS"
         : status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                                 : "another status";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new int(0));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute, cudaDataType scale) {
  return make(made, {.compute = compute, .scale = scale}), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) { return destroy(d); }

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t size) {
  Description& d = behind(handle);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(d.transpose_a, value, size), CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(d.transpose_b, value, size), CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(d.epilogue, value, size), CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
      return take(d.scale_a, value, size), CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      return take(d.scale_b, value, size), CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE:
      return take(d.mode_a, value, size), CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE:
      return take(d.mode_b, value, size), CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
      return take(d.fast, value, size), CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(d.bias, value, size), CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return take(d.aux, value, size), CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return take(d.aux_ld, value, size), CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return take(d.bias_type, value, size), CUBLAS_STATUS_SUCCESS;
    default:
      refuse(fmt::format("attribute {} of a product, which it does not know", static_cast<int>(attribute)));
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t ld) {
  return make(made, {.type = type, .rows = rows, .columns = columns, .ld = ld}), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroy(layout); }

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                std::size_t size) {
  Layout& layout = behind(handle);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) {
    take(layout.batch, value, size);
  } else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) {
    take(layout.stride, value, size);
  } else {
    refuse("an attribute of a layout, which it does not know");
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  return make(made, {}), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t wish) { return destroy(wish); }

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t size) {
  Preference& wish = behind(handle);
  const int operand = attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    take(wish.workspace, value, size);
  } else if (operand >= 0 && operand < 4) {
    take(wish.alignment[static_cast<std::size_t>(operand)], value, size);
  } else {
    refuse("a wish that it does not know");
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t wish, int asked,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  const std::lock_guard lock(Machine::get().mutex);
  const Product product{behind(description), {behind(a), behind(b), behind(c), behind(d)}};
  *found = 0;
  if (asked < 1) return CUBLAS_STATUS_INVALID_VALUE;
  if (!sizes_of(product)) return CUBLAS_STATUS_NOT_SUPPORTED;
  Algorithm algorithm{.product = number_of(product), .workspace = behind(wish).workspace};
  for (std::size_t i = 0; i < 4; ++i) algorithm.alignments |= std::uint64_t{behind(wish).alignment[i]} << (16 * i);
  for (; *found < asked && algorithm.number < algorithm_seconds().size(); ++*found, ++algorithm.number) {
    results[*found] = {};
    results[*found].state = CUBLAS_STATUS_SUCCESS;
    results[*found].workspaceSize = algorithm.workspace;
    results[*found].algo = kept(algorithm);
  }
  return CUBLAS_STATUS_SUCCESS;
}

std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result) {
  const std::lock_guard lock(Machine::get().mutex);
  const Product product{behind(description), {behind(a), behind(b), behind(c), behind(d)}};
  const Algorithm known = algorithm_of(*algorithm);
  if (!sizes_of(product) || known.product != number_of(product)) return CUBLAS_STATUS_NOT_SUPPORTED;
  *result = {};
  result->workspaceSize = known.workspace;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t layout_a, const void* b, cublasLtMatrixLayout_t layout_b,
                              const void* beta, const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  Machine& machine = Machine::get();
  const std::lock_guard lock(machine.mutex);
  const Algorithm chosen = algorithm_of(*algorithm);
  const Product now{behind(description), {behind(layout_a), behind(layout_b), behind(layout_c), behind(layout_d)}};
  if (chosen.product != number_of(now)) refuse("an algorithm that was chosen for another product");
  if (chosen.number >= algorithm_seconds().size()) refuse("an algorithm that it does not have");
  const auto sizes = sizes_of(now);
  if (!sizes) return CUBLAS_STATUS_NOT_SUPPORTED;
  const std::array<const void*, 4> operands{a, b, c, d};
  constexpr std::array kNames{"A", "B", "C", "D"};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    check_extent(kNames[i], operands[i], now.layouts[i], chosen.alignment(i));
  }
  const std::size_t element = size_of(now.layouts[3].type);
  const auto rows = static_cast<std::size_t>(sizes->m), columns = static_cast<std::size_t>(sizes->n);
  if (now.description.has_bias() && !machine.on_device(now.description.bias, rows * element))
    refuse("a bias that is not within device memory");
  if (now.description.has_aux() &&
      !machine.on_device(now.description.aux,
                         ((columns - 1) * static_cast<std::size_t>(now.description.aux_ld) + rows) * element))
    refuse("an auxiliary matrix that is not within device memory");
  if (workspace_bytes < chosen.workspace || !machine.on_device(workspace, workspace_bytes))
    refuse("a workspace that is smaller than the algorithm's");
  const Operands o{*static_cast<const float*>(alpha), *static_cast<const float*>(beta), a, b, c, d};
  const std::chrono::duration<double> takes(algorithm_seconds()[chosen.number]);
  machine.issue(stream, [now, sizes = *sizes, o, workspace, takes, from_behind = chosen.number > 0] {
    constexpr std::size_t kUsed = std::size_t{1} << 12;
    std::memset(workspace, 0xff, kUsed);  // whoever keeps anything there loses it
    if (Machine::get().computes()) compute(now, sizes, o, from_behind);
    Machine::get().takes(std::chrono::duration_cast<trivium::fake_gpu::Clock::duration>(takes));
    return true;
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
