// Telling what an existing file is.
#pragma once

#include <string>

#include "cli/render/output.h"

namespace trivium::cli {

/// "a plan file", where an existing regular file is none although `kind` is that; empty where it is one, is empty, is a
/// device or a pipe, or does not exist.
std::string other_kind(const std::string& file, OutputKind kind);

}  // namespace trivium::cli
