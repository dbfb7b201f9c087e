// Which of a recipe's products in 8 bits a device has.
#pragma once

#include <optional>

#include "program/ir/op.h"
#include "runtime/cuda/gemm.h"

namespace trivium::runtime::cuda {

/// How cuBLASLt reads an operand's scales on a device that has such products; nothing where it does not.
inline std::optional<Scaling> scaling_of(ScaledProducts has, program::Fp8 recipe, program::Fp8Operand what) {
  if (program::scales_tensors(recipe)) return Scaling::kTensor;
  if (has == ScaledProducts::kBlocks32) return Scaling::kVectors32;
  if (has != ScaledProducts::kBlocks128 || recipe != program::Fp8::kBlock) return std::nullopt;
  return what == program::Fp8Operand::kWeight ? Scaling::kSquares128 : Scaling::kVectors128;
}

}  // namespace trivium::runtime::cuda
