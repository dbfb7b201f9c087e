#include "simulator/cost/copy_cost.h"

#include <algorithm>

namespace trivium::simulator {

edge::Seconds copy_cost(edge::Bytes bytes, bool disk, int sharing, const hardware::Node& node) {
  const edge::Seconds link = bytes / node.host_link;
  return disk ? std::max(link, bytes * static_cast<double>(sharing) / node.disk) : link;
}

}  // namespace trivium::simulator
