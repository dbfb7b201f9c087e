// All-reduces among the first ranks of a communicator.
#pragma once

#include <cstdint>
#include <map>

#include "base/units.h"
#include "runtime/backend.h"
#include "runtime/communicator.h"

namespace trivium::runtime::microbench {

/// By group size: powers of two below the number of ranks, and all of them.
struct AllReduceTimes {
  std::map<int, base::BytesPerSecond>
      bus;                               ///< 2 (n - 1) / n * bytes / time, as nccl-tests' doc/PERFORMANCE.md defines it
  std::map<int, base::Seconds> latency;  ///< of eight bytes
  std::map<int, double> bus_spread, latency_spread;  ///< of the batches whose median counts, relative
};

/// Called by all ranks, each with a device of its own; rank 0 gets the times, the others those of groups they were in.
/// `bytes`: of the large ones, a multiple of 4.
AllReduceTimes time_all_reduces(Communicator& communicator, Backend& device, std::int64_t bytes);

}  // namespace trivium::runtime::microbench
