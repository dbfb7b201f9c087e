// A model's parameters, and its forward body for a number of tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/model.h"
#include "program/ir/program.h"
#include "runtime/checkpoint/stored.h"
#include "runtime/cpu/backend.h"
#include "runtime/executor/arenas.h"
#include "runtime/kernel.h"

namespace trivium::runtime::generate {

/// Parameters of one rank in fp32, where every body of the model finds them.
class Weights {
 public:
  /// Errors: as Forward's.
  Weights(const models::Model& model, const checkpoint::StoredTensors& tensors);
  std::byte* at(const program::Buffer& buffer) const { return arenas_->base(0, buffer.space, 0) + buffer.offset; }
  const std::vector<program::Parameter>& parameters() const { return program_.kinds.front().parameters; }

 private:
  program::Program program_;
  cpu::CpuBackend core_;
  std::unique_ptr<Arenas> arenas_;
};

/// What a pass goes on.
struct Text {
  std::int64_t past = 0;             ///< tokens before its own
  std::span<const KeptKeys> layers;  ///< their keys and values, to which it adds its own; empty: it keeps none
};

class Pass {
 public:
  /// `tokens`: of one call. `last_alone`: logits after the last token alone, in the first row. `weights` outlives it.
  /// Errors: as Forward's.
  Pass(const models::Model& model, const Weights& weights, std::int64_t tokens, bool last_alone);

  /// From here on it may be a part of texts of so many tokens; else of its own alone.
  void reach(std::int64_t longest);

  /// Logits, one row of the vocabulary after the other. Fewer tokens than the pass has are followed by others, which
  /// change nothing of what stands before them. Valid until the next call.
  std::span<const float> operator()(std::span<const std::int32_t> tokens, const Text& text = {});

  std::int64_t tokens() const { return tokens_; }
  std::span<const float> row(std::int64_t i) const;

 private:
  std::byte* address(int buffer) const;
  void take_ops(bool last_alone);

  program::Program program_;
  const Weights& weights_;
  std::int64_t tokens_;
  cpu::CpuBackend core_;
  std::unique_ptr<Arenas> arenas_;
  std::vector<program::Op> ops_;  // up to the loss
  std::size_t head_ = 0;          // the product that makes the logits
  double logit_scale_ = 1, logit_cap_ = 0;
  int logits_ = -1;  // buffer
  std::int64_t rows_ = 0;
};

}  // namespace trivium::runtime::generate
