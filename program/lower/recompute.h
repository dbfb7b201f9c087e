// Recomputation of parts: what a plan cannot have of it.
#pragma once

#include <optional>

#include "program/ir/program.h"
#include "program/lower/lower.h"

namespace trivium::program {

/// Layers or modules that nothing recomputes, and modules that the model does not have, by name.
std::optional<Infeasible> check_recomputation(const Job& job);

}  // namespace trivium::program
