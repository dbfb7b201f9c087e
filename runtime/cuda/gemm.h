// A product of matrices as ops ask for it.
#pragma once

#include <cstdint>

#include "program/plan/dtype.h"

namespace trivium::runtime::cuda {

/// What is done to C before it is stored, in the same kernel.
enum class Epilogue : std::uint8_t {
  kNone,
  kGelu,         ///< aux = C, C = gelu(C)
  kGeluGradient  ///< C = C * gelu'(aux)
};

/// How the codes of an operand in 8 bits are read.
enum class Codes : std::uint8_t { kNone, kE4M3, kE5M2 };

/// What the numbers at an operand's scales are, and how they lie (cuBLAS 13, "Scaling Factors Layouts"). `outer` are
/// the rows of A or the columns of B, `inner` what is summed over.
enum class Scaling : std::uint8_t {
  kTensor,      ///< one, fp32
  kVectors128,  ///< fp32 (ceil(inner / 128), outer)
  kSquares128,  ///< fp32 (ceil(outer / 128), ceil(inner / 128) rounded up to a multiple of four)
  kVectors32    ///< E8M0, tiles of 128 outer and 4 x 32 inner
};

/// Scaled products that a device has besides those of kTensor.
enum class ScaledProducts : std::uint8_t {
  kNone,
  kBlocks128,  ///< kVectors128 on one side or both, kSquares128 on one side: sm_90
  kBlocks32    ///< kVectors32 on both sides: from sm_100 on
};

/// C (m, n) = alpha A (m, k) B (k, n) + beta C, row-major, for `batch` of them. Sums are fp32. A transposed operand is
/// stored (k, m) or (n, k). `ld` are elements from row to row as stored, strides elements from one of the batch to the
/// next.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  program::DType type = program::DType::kFp32;  ///< of A and B
  program::DType out = program::DType::kFp32;   ///< of C
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  bool a_transposed = false, b_transposed = false;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  float alpha = 1, beta = 0;
  const void* bias = nullptr;  ///< (n), of type `out`, added to every row
  Epilogue epilogue = Epilogue::kNone;
  void* aux = nullptr;  ///< (m, n) of type `out`, rows n apart: the input of GELU (its tanh form), bias included
  int batch = 1;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  /// Operands in 8 bits, both or neither, instead of `type`: cuBLASLt takes A as it is and B transposed, rows of whole
  /// 16 bytes, and at most one E5M2. What codes mean is multiplied by the scales, in memory of the device.
  Codes a_codes = Codes::kNone, b_codes = Codes::kNone;
  Scaling a_scaling = Scaling::kTensor, b_scaling = Scaling::kTensor;
  const void* a_scale = nullptr;
  const void* b_scale = nullptr;
  bool fast_sums = false;  ///< tensor cores keep sums of such products to fewer bits than fp32 has
};

}  // namespace trivium::runtime::cuda
