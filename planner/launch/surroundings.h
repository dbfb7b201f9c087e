// The files around a launch file, which it may name.
#pragma once

#include <string>
#include <vector>

#include "planner/launch/shell/reading.h"

namespace trivium::planner::launch {

/// Of a launch file at `path`: files that it names are looked for next to it and in the folders above, up to four;
/// none larger than 4 MiB is read. `environment`: NAME=value. Errors: Failure(kUsage) for what is no NAME=value.
shell::Surroundings surroundings_of(const std::string& path, const std::vector<std::string>& environment = {});

}  // namespace trivium::planner::launch
