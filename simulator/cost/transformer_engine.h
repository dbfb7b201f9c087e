// What Transformer Engine and Megatron-Core do around products, where a Program says it otherwise: for stacks that run
// them, and for time alone (docs/explanation/cost-model.md, "Transformer Engine").
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "program/ir/op.h"
#include "program/plan/stack.h"

namespace trivium::simulator {

/// Whether layers are Transformer Engine's, whose grouped linear layers launch expert by expert.
inline bool runs_transformer_engine(const program::StackTraits& stack) { return stack.expert_issue > 0; }

/// Whether the host launches what experts compute one by one; captured iterations run them as one kernel.
inline bool launches_experts_apart(const program::StackTraits& stack) {
  return runs_transformer_engine(stack) && stack.issue >= 1;
}

/// How many products of experts such layers run at once; 0: all of them are one kernel.
int experts_at_once(const program::StackTraits& stack);

/// Bytes that kernels of experts move more (or, where a product does their work, less) than op.bytes * traffic: biases
/// of what leaves experts and the cuts of clamped activations are PyTorch's kernels, one after the other.
double loose_expert_bytes(const program::Op& op, const program::StackTraits& stack, double traffic);

/// And how many kernels more these are, in units of kernels_of.
double loose_expert_kernels(const program::Op& op, const program::StackTraits& stack);

/// The ops of a segment as such a stack executes them, or nothing where it executes them as they are. With sequence
/// parallelism, what only casts read is cast by the rank that has it and gathered in 8 bits or fewer; a mixture's
/// tokens are routed where they are, so that nothing is gathered for the router or scattered after it (elements 0).
/// Rows that arrive from other ranks are sorted by expert, and back; with any stack, where it dispatches by DeepEP or
/// HybridEP, a token goes once to a rank instead, and exchanges say of how many experts it chose how many. Rotary
/// positions whose sines have an `amplitude` are PyTorch's kernels. Parameters that are gathered in 8 bits are not cast
/// where they arrive, but transposed.
struct Executed {
  double amplitude = 1;
  bool gathers_codes = false;  ///< parameters (program::Settings::gathers_in_8_bits)
};
std::optional<std::vector<program::Op>> as_executed(std::span<const program::Op> ops, const program::StackTraits& stack,
                                                    int tensor, const Executed& how = {});

}  // namespace trivium::simulator
