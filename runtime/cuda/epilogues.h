// Which products and activations of a program cuBLAS may do in one: the MLP's first product with its bias and GELU, and
// the data gradient of its second with GELU's gradient. The Program stays as it is.
#pragma once

#include <string>
#include <unordered_map>

#include "program/ir/program.h"

namespace trivium::runtime::cuda {

/// What becomes of an op. Where a pair is done in one, the product's turn passes and both are done at the activation's.
/// Then the kept input of the activation holds the bias: an activation's gradient must not add it again, in a pair or
/// not.
enum class EpiloguePart { kNone, kProduct, kActivation, kGradient, kGradientAlone };

/// Looks at a program once.
class Epilogues {
 public:
  Epilogues() = default;  ///< of no program: every op is kNone
  explicit Epilogues(const program::Program& program);

  EpiloguePart part_of(const program::Op& op) const {
    const auto found = parts_.find(&op);
    return found == parts_.end() ? EpiloguePart::kNone : found->second;
  }
  /// Pairs of all bodies.
  int pairs() const { return pairs_; }

 private:
  std::unordered_map<const program::Op*, EpiloguePart> parts_;
  int pairs_ = 0;
};

}  // namespace trivium::runtime::cuda
