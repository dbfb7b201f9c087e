// The forward pass of a trained model on given tokens, outside a training.
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

namespace trivium::runtime::generate {

/// One rank's forward body on the CPU in fp32, without its loss. Memory: the parameters and one micro-batch's frame.
class Forward {
 public:
  /// Takes the parameters from `tensors`. `longest`: tokens of one call. Errors: Failure(kInput) where the tensors are
  /// not the model's; Failure(kUsage) for a model the CPU backend has no kernels for.
  Forward(const models::Model& model, const checkpoint::StoredTensors& tensors, std::int64_t longest);

  /// Logits (vocabulary) behind each of the tokens: row i predicts token i + 1. Valid until the next call.
  /// Precondition: 1 to `longest` tokens within the vocabulary.
  std::vector<std::span<const float>> operator()(std::span<const std::int32_t> tokens);

  std::int64_t longest() const { return program_.settings.batch.sequence; }

 private:
  program::Program program_;
  cpu::CpuBackend core_;
  std::unique_ptr<Arenas> arenas_;
  std::int64_t width_ = 0;  // vocabulary with padding
  std::size_t loss_ = 0;    // the first op that is left out
  int logits_ = -1;         // buffer
};

}  // namespace trivium::runtime::generate
