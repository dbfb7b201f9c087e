// Expressions of family files: what a member of a model is, told of the keys of a configuration.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/json_reader.h"

namespace trivium::models {

/// What a name stands for: the value of a key, of the family's default, or null where neither says anything.
using Lookup = std::function<nlohmann::json(const std::string& name)>;

/// Value of an expression; `where` is its place in the family file. From loosest to tightest: `if A then B else C`,
/// `or`, `and`, `not`, comparisons and `in`, `A ?? B` (B where A is null), `+ -`, `* / // %`, `A.member`, `A[index]`;
/// numbers, 'text', true, false, null, [lists], names, and the functions of docs/reference/family-files.md. Arithmetic
/// with null is null; what a condition leaves out is not evaluated. Errors: Failure(kInput) at `where`.
nlohmann::json evaluate(const std::string& expression, const Lookup& lookup, const base::JsonReader& where);

/// Names of keys that an expression mentions, evaluated or not.
std::set<std::string> names_of(const std::string& expression, const base::JsonReader& where);

}  // namespace trivium::models
