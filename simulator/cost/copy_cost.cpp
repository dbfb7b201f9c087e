#include "simulator/cost/copy_cost.h"

#include <algorithm>

namespace trivium::simulator {

base::Seconds copy_cost(base::Bytes bytes, bool disk, int sharing, const hardware::Node& node) {
  const base::Seconds link =
      bytes * static_cast<double>(std::min(sharing, node.devices_per_host_link)) / node.host_link;
  return disk ? std::max(link, bytes * static_cast<double>(sharing) / node.disk) : link;
}

}  // namespace trivium::simulator
