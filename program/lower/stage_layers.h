// Layers of every chunk, where the plan lists them.
#pragma once

#include <optional>

#include "program/ir/program.h"
#include "program/lower/lower.h"

namespace trivium::program {

/// A list of another length or sum, or with a chunk that has nothing: embedding and head may have one of their own, so
/// the first and the last entry may be 0; the first not where the schedule splits the backward.
std::optional<Infeasible> check_stage_layers(const Job& job);

}  // namespace trivium::program
