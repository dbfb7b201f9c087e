// Two texts as the unified diff between them.
#pragma once

#include <string>
#include <string_view>

namespace trivium::base {

/// With three lines around every change, as `patch -p0` and `git apply -p0` take it; both files have the same name.
/// Empty where the texts are one.
std::string unified_diff(std::string_view before, std::string_view after, const std::string& name);

}  // namespace trivium::base
