// What every op of a Program drops.
#pragma once

#include <cstdint>

#include "program/ir/program.h"
#include "runtime/dropout.h"

namespace trivium::runtime {

/// The key that a site's words are drawn with, without the head. `layer`: number in the model, 0 at the embedding. Two
/// sites of one seed never share a key with any of their heads.
std::uint64_t dropout_key(std::uint64_t seed, std::int64_t layer, program::DropoutSite site);

/// What the op drops in step `step` on the rank at those coordinates, as part of that task. Probability, layer, place
/// in the batch and heads count; nothing else of the plan does.
Dropout dropout_of(const program::Program& program, const program::Coordinates& at, const program::Task& task,
                   const program::Op& op, std::int64_t step);

}  // namespace trivium::runtime
