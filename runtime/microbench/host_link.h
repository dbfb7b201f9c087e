// The link between a device and the host's memory.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "runtime/backend.h"

namespace trivium::runtime::microbench {

struct HostLinkTime {
  base::BytesPerSecond rate;
  double spread = 0;  ///< of the copies in that direction, from the tenth to the ninetieth of a hundred
};

/// Bandwidth of one direction, the slower of both: medians of copies of `bytes` between memory of the device and memory
/// of the host that it copies from fast, as offloading makes them.
HostLinkTime time_host_link(Backend& device, std::int64_t bytes);

}  // namespace trivium::runtime::microbench
