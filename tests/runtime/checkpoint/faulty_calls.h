// A file system where one call fails.
#pragma once

#include <string>

namespace trivium::runtime::checkpoint {

/// From now on counts the calls that make, write, flush, rename or close files below `folder`, and lets number
/// `failing` (from 0) fail: with ENOSPC where it writes, with EIO otherwise. Negative: none fails.
void arm_faults(const std::string& folder, long failing);

/// Ends that. How many calls there were.
long disarm_faults();

}  // namespace trivium::runtime::checkpoint
