// Selective recomputation: what a plan cannot have of it.
#pragma once

#include <optional>

#include "program/ir/program.h"
#include "program/lower/lower.h"

namespace trivium::program {

/// Modules that the model does not have, or that nothing drops, by name.
std::optional<Infeasible> check_modules(const Job& job);

}  // namespace trivium::program
