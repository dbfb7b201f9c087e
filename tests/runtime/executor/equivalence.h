// One comparison of a split run with its reference: a test's expectation and a row of the printed table.
#pragma once

#include <string_view>

#include "tests/runtime/executor/harness.h"

namespace trivium::runtime::testing {

/// Relative; fp64 sums in another order differ by some 1e-15 an operation.
inline constexpr double kTolerance = 1e-11;

enum class Asked { kClose, kBits };

/// Trains `job` for as many steps as `reference` has and expects losses, norms, gradients, moments and parameters
/// within kTolerance of it or, where asked, the same bit by bit. `against`: what the reference is, where it is not one
/// rank with the same micro-batch. `cluster` as in `run`.
void expect_equivalent(const Trained& reference, const program::Job& job, Asked asked = Asked::kClose,
                       std::string_view against = "one rank", const std::string& cluster = "generic-cpu");

}  // namespace trivium::runtime::testing
