// Which rank a file is of, by its name.
#pragma once

#include <optional>
#include <string>

namespace trivium::calibration::foreign {

/// The last number in the file's name: 12 of "nccl_trace_rank_12" and of "snapshot.12.pickle".
std::optional<int> rank_in_name(const std::string& file);

}  // namespace trivium::calibration::foreign
