// Ranks that were started apart from each other do the same training.
#pragma once

#include <filesystem>
#include <string_view>

#include "program/ir/program.h"
#include "runtime/communicator.h"

namespace trivium::runtime::session {

/// Every rank calls it with its program before the first step; ends all ranks where one has another program than rank
/// 0, as they would wait for each other for ever.
void check_same_program(Communicator& communicator, const program::Program& program);

/// Likewise with the files of a folder that end so, by name and byte: ends all ranks where one has others than rank 0.
/// Errors: Failure(kInput) where one cannot be read.
void check_same_files(Communicator& communicator, const std::filesystem::path& folder, std::string_view extension);

}  // namespace trivium::runtime::session
