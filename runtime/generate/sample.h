// Text from a model, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/model.h"
#include "runtime/checkpoint/stored.h"

namespace trivium::runtime::generate {

struct SampleOptions {
  std::int64_t tokens = 100;  ///< to generate
  double temperature = 1;     ///< 0: always the most likely token
  std::int64_t top_k = 0;     ///< only among the k most likely; 0: all
  std::uint64_t seed = 1;
  /// Called with every new token; false ends it.
  std::function<bool(std::int32_t)> on_token;
};

/// Number i of a seed, in [0, 1).
double drawn(std::uint64_t seed, std::int64_t number);

/// The next token given the logits: softmax(logits / temperature) over the `top_k` largest (ties: the lower number), at
/// the point `uniform` in [0, 1) of its cumulative distribution.
std::int32_t choose(std::span<const float> logits, double temperature, std::int64_t top_k, double uniform);

/// Goes on from `prompt`, whose keys and values are kept: a token costs one pass over one position. Where text and
/// prompt exceed the model's longest sequence, the oldest tokens are forgotten, and a token costs a pass over all of
/// them. Number i is drawn from a counter hash of (seed, i) alone. Precondition: the prompt is not empty and lies
/// within the vocabulary.
std::vector<std::int32_t> sample(const models::Model& model, const checkpoint::StoredTensors& tensors,
                                 std::vector<std::int32_t> prompt, const SampleOptions& options);

}  // namespace trivium::runtime::generate
