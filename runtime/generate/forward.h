// The forward pass of a trained model on given tokens, outside a training.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/model.h"
#include "runtime/checkpoint/stored.h"
#include "runtime/generate/pass.h"

namespace trivium::runtime::generate {

/// One rank's forward body on the CPU in fp32, without its loss. Mixtures drop no token, whatever capacity they were
/// trained with: what a token is given does not depend on what comes after it. Memory: the parameters, one layer's
/// activations of the tokens that are read at once, and what is kept of a text.
class Forward {
 public:
  /// Takes the parameters from `tensors`. `longest`: tokens of a text. Errors: Failure(kInput) where the tensors are
  /// not the model's; Failure(kUsage) for a model the CPU backend has no kernels for.
  Forward(const models::Model& model, const checkpoint::StoredTensors& tensors, std::int64_t longest);

  /// Logits (vocabulary) after each of the tokens, which are a text of their own: row i predicts token i + 1. Valid
  /// until the next call of any kind. Precondition: 1 to `longest` tokens within the vocabulary.
  std::vector<std::span<const float>> operator()(std::span<const std::int32_t> tokens);

  /// Logits after the last of the tokens, which continue the text since `forget`, whose keys and values are cached: a
  /// token costs one pass over one position, a text's first tokens one pass over all of them. Equal to those of the
  /// whole text but for rounding. Valid until the next call of any kind. Precondition: as above, of the text so far.
  std::span<const float> next(std::span<const std::int32_t> tokens);
  void forget() { read_ = 0; }

  std::int64_t longest() const { return longest_; }

 private:
  std::span<const float> one(std::int32_t token);
  void make_room(std::int64_t tokens);

  models::Model model_;
  std::int64_t longest_;
  Weights weights_;
  std::unique_ptr<Pass> whole_, step_;  // of `longest` tokens, of one
  std::unique_ptr<Pass> first_;         // of the last text's first tokens, until the next call
  std::vector<float> memory_;           // keys and values of every layer, with room that doubles
  std::vector<KeptKeys> kept_;
  std::int64_t read_ = 0;  // tokens of the text that are kept
};

}  // namespace trivium::runtime::generate
