// Arithmetic of $(( )), let and expr.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace trivium::planner::launch::shell {

/// How arithmetic sees variables; values as text, which may be expressions again.
struct Names {
  std::function<std::string(const std::string&)> get;
  std::function<void(const std::string&, const std::string&)> set;
};

/// The value, or nothing where it depends on what is not known. Throws SyntaxError (line 0) for what is no expression
/// and for division by zero.
std::optional<std::int64_t> evaluate(std::string_view text, const Names& names, int depth = 0);

}  // namespace trivium::planner::launch::shell
