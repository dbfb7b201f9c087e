// Which program this is.
#pragma once

#include <string>

namespace trivium::cli {

/// "0.2.0".
std::string version();

/// Version, commit, compiler and libraries, a line each: what a report of an error should hold.
std::string version_lines();

}  // namespace trivium::cli
