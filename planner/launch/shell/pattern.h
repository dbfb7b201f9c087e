// Shell patterns: *, ?, [a-z], and characters after a backslash that stand for themselves.
#pragma once

#include <string>
#include <string_view>

namespace trivium::planner::launch::shell {

bool matches(std::string_view pattern, std::string_view text);
/// ${X#p}, ${X##p}, ${X%p}, ${X%%p}.
std::string without_prefix(const std::string& text, std::string_view pattern, bool longest);
std::string without_suffix(const std::string& text, std::string_view pattern, bool longest);
/// ${X/p/r}, ${X//p/r}.
std::string replaced(const std::string& text, std::string_view pattern, std::string_view by, bool all);

}  // namespace trivium::planner::launch::shell
