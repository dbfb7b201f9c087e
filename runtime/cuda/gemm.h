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
  /// 16 bytes, and at most one E5M2. What codes mean is multiplied by the numbers at the scales, in memory of the
  /// device.
  Codes a_codes = Codes::kNone, b_codes = Codes::kNone;
  const float* a_scale = nullptr;
  const float* b_scale = nullptr;
  bool fast_sums = false;  ///< tensor cores keep sums of such products to fewer bits than fp32 has
};

}  // namespace trivium::runtime::cuda
