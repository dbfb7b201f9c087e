// How readers of files turn away what they cannot take.
#pragma once

#include <string>

namespace trivium::base {

/// Throws a Failure of input, "FILE: WHAT" in one line.
[[noreturn]] void refuse(const std::string& file, const std::string& what);

}  // namespace trivium::base
