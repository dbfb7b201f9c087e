// What ops lose when ranks take turns on cores.
#pragma once

#include <cstdint>
#include <vector>

namespace trivium::runtime::microbench {

struct CoreSharing {
  std::int64_t bytes_per_core = 0;  ///< of everything a core's two ranks keep
  std::vector<double> slowdowns;    ///< of every timed step: by which share its ops take longer; below 0: faster
};

/// Trains data-parallel ranks for real, one a core and two a core, each rank with the same work; ops on `cores` cores
/// are compared, not what ranks wait for each other. Of three sizes, ascending.
std::vector<CoreSharing> time_core_sharing(int cores, bool quick);

}  // namespace trivium::runtime::microbench
