// Products of matrices in 8 bits: recipes, as Transformer Engine and Megatron-Core name them.
#pragma once

#include <cstdint>
#include <string_view>

namespace trivium::program {

/// How the operands of the layers' products are scaled before they are cast. Inputs and weights are E4M3; gradients are
/// E5M2 where a scale is a whole tensor's (kDelayed, kCurrent), else E4M3; NVFP4 is E2M1.
enum class Fp8 : std::uint8_t {
  kNone,
  kDelayed,  ///< by the largest number of steps before
  kCurrent,  ///< by the largest number that is there
  kBlock,    ///< of 128 numbers in a row, of weights of 128 x 128
  kMxfp8,    ///< of 32 numbers in a row (OCP Microscaling Formats, 2023)
  kNvfp4     ///< of 16 numbers in a row
};
std::string_view name_of(Fp8 recipe);  ///< "none" "delayed" "current" "block" "mxfp8" "nvfp4"

/// Whether one scale holds for a whole tensor.
constexpr bool scales_tensors(Fp8 recipe) { return recipe == Fp8::kDelayed || recipe == Fp8::kCurrent; }

/// Whether the layers' matrices are kept and gathered in 8 bits alone: Transformer Engine's primary weights, Megatron's
/// fp8_param_gather.
enum class Fp8Gather : std::uint8_t {
  kStack,  ///< as the stack does it
  kOn,
  kOff  ///< in the type of the other parameters, which are cast in a step's first forward
};
std::string_view name_of(Fp8Gather value);  ///< "stack" "on" "off"

/// What an operand of a product is.
enum class Fp8Operand : std::uint8_t { kInput, kWeight, kGradient };
constexpr int kFp8Operands = 3;

/// Steps whose largest numbers kDelayed looks at: `amax_history_len` of Transformer Engine's DelayedScaling, whose
/// `amax_compute_algo` is "max" by default (Transformer Engine, Common API), as in the recipes of NeMo.
constexpr int kAmaxHistory = 1024;

}  // namespace trivium::program
