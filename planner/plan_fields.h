// Plan fields as texts: what tables, comparisons and constraints look at.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "program/plan.h"

namespace trivium::planner {

/// The value of a field of program::plan_fields, as set_field takes it: "8", "true", "full", "4,4,4". Empty for an
/// unknown field.
std::string text_of(const program::Plan& plan, const std::string& field);

/// The same, looked up once for many plans; null for an unknown field.
using FieldText = std::string (*)(const program::Plan& plan);
FieldText text_of_field(const std::string& field);

/// Fields in which two plans differ, in the order of program::plan_fields.
struct Difference {
  std::string field, before, after;
  bool operator==(const Difference&) const = default;
};
std::vector<Difference> differences(const program::Plan& before, const program::Plan& after);

}  // namespace trivium::planner
