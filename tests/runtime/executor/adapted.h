// Jobs with adapters (LoRA), and what their gradients must be by other ways.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/runtime/executor/harness.h"

namespace trivium::runtime::testing {

inline constexpr std::int64_t kRank = 3;

/// The job with adapters of rank kRank, whose factor is not 1.
program::Job with_adapters(program::Job job);

bool is_adapter(const std::string& name);

/// For `run`: the second factors are random too, so that gradients of the first are not 0; `factor` on all of the
/// tensors named `scaled`.
std::function<void(program::Program&)> random_factors(const std::string& scaled = "", double factor = 1);

/// The job with learning rate 0.
program::Job standing_still(program::Job job);

/// With B = 0 the adapted model is the model, so B's gradient is that of the target's weight by way of A:
/// dL/dB = scale A^T dL/dW, of experts each by itself. `whole`: the job without adapters. Expects `adapters` of them.
void expect_gradients_by_way_of_weights(const program::Job& adapted, const program::Job& whole, int adapters);

/// (L(a (1 + e)) - L(a (1 - e))) / 2e = sum of dL/da a over all tensors of a's name, for both factors of every target.
void expect_gradients_of_finite_differences(const program::Job& adapted, const std::vector<std::string>& targets);

}  // namespace trivium::runtime::testing
