// Single ops of GPT-2's training, with operands of the sizes that they have there.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "program/ir/op.h"
#include "program/ir/program.h"

namespace trivium::bench {

/// What an operand is filled with: numbers in [-1, 1) in bf16 or fp32, in [0, 1) in fp32, ids of tokens, of which few
/// are frequent, nothing.
enum class Fill : std::uint8_t { kZero, kHalf, kWide, kPositive, kIds };

struct Operand {
  std::int64_t bytes = 0;  ///< 0: absent
  Fill fill = Fill::kZero;
};

/// One call of one op in bf16.
struct CudaCase {
  std::string name, shape;
  program::Op op;
  program::ChunkTemplate kind;
  double bytes = 0;  ///< that have to be read and written, whatever the kernel
  double flops = 0;
  std::array<Operand, program::kMaxOperands> in;
  std::array<Operand, 3> out;
  std::array<Operand, program::kSpaces> spaces;  ///< of optimizer kinds
  bool in_place = false;                         ///< out[0] is in[0]
  bool after_forward = false;  ///< attention's backward: in[1] and in[2] are what the forward makes of in[0]

  std::int64_t footprint() const;
};

constexpr std::int64_t kVocabulary = 50257;

std::vector<std::int32_t> made_ids(std::int64_t count);
std::vector<CudaCase> cuda_cases();

}  // namespace trivium::bench
