// What tells two plans apart.
#pragma once

#include <string>
#include <vector>

#include "program/plan/plan.h"

namespace trivium::program {

/// Fields in which two plans differ, with their values as text, in the order of plan_fields().
struct Difference {
  std::string field, before, after;
  bool operator==(const Difference&) const = default;
};
std::vector<Difference> differences(const Plan& before, const Plan& after);

}  // namespace trivium::program
