// From a job to a Program: every feature of a plan is lowered here, none is a formula bolted on later.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "program/ir/program.h"

namespace trivium::program {

/// Why a plan cannot be: a value, not a failure. `rule` is a stable short name ("tensor-divides-heads").
struct Infeasible {
  std::string rule;
  std::string reason;  ///< one line with the numbers in it
};

/// Checks that hold without lowering: divisibility, ranges, fields not supported yet (refused by name).
/// `ranks`: devices there are, or 0 where unknown.
std::optional<Infeasible> check(const Job& job, int ranks = 0);

/// The plan as it is lowered: gradients are reduced in 16 bits only where they are kept so or the plan says so, and
/// never wider than the stack keeps them. Precondition: a known stack.
Plan normalised(Plan plan);

/// The Program of a job, its communication not yet ordered (`Role::order` empty).
std::variant<Program, Infeasible> lower(const Job& job);

}  // namespace trivium::program
