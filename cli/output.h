// Files that commands write: judged when the command line is read, not after the work.
#pragma once

#include <CLI/CLI.hpp>

namespace trivium::cli {

/// Refuses a name that could not be written: empty, a folder, inside a folder that does not exist, or without the
/// permission.
CLI::Validator output_file();

}  // namespace trivium::cli
