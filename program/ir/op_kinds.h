// What is known of an op kind in addition to its operands (op.h): one row each in op_kinds.cpp, which gives its cost,
// its work and its name.
#pragma once

#include <string_view>

#include "program/ir/op.h"

namespace trivium::program {

/// Kinds that are priced by one rule (simulator/cost, simulator/collectives).
enum class OpClass : std::uint8_t {
  kRows,          ///< memory-bound, over tokens
  kProduct,       ///< of matrices, of one or of every expert
  kQuantize,      ///< casts to 8 bits
  kAttention,     ///< scores, softmax and weighted values
  kRouting,       ///< choices of experts, and rows to and from them
  kLoss,          ///< memory-bound, over logits; the same kernels in all stacks
  kOptimizer,     ///< memory-bound, over a bucket; the same kernels in all stacks
  kMuon,          ///< iterations of products, of one or of every expert's matrix
  kState,         ///< memory-bound, over a bucket or a buffer
  kCopy,          ///< between device and host or disk
  kCommunication  ///< between ranks
};

/// Kernels that a host launches for an op.
struct Launches {
  double fused = 1;      ///< in stacks with fused kernels
  double flash = fused;  ///< of flash attention
  double unfused_more =
      0;  ///< further ones where bias, mask, dropout and residual are kernels of their own, but in flash
};

struct OpTraits {
  std::string_view name;  ///< snake_case, as in profiles and records
  OpClass op_class{};
  /// Fills in FLOPs and bytes from the shape. A pointwise op counts no FLOPs, so that the sum over a body is what the
  /// model's formulas say; bytes of 16-bit types are those of the kernels that published runs identify, wider ones
  /// scaled by size / 2.
  void (*work)(Op&) = nullptr;
  Launches launches;
  double element_bytes = 0;   ///< classes kRows and kLoss: memory traffic of an element at 16 bit (of logits: fp32)
  bool synchronises = false;  ///< the host waits for its result
};

const OpTraits& traits_of(OpKind kind);

/// Fills in Op::flops and Op::bytes from kind, shape and type.
void fill_work(Op& op);

}  // namespace trivium::program
