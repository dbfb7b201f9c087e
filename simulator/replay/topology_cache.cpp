#include "simulator/replay/topology_cache.h"

#include <algorithm>

namespace trivium::simulator {

ReplayTopology TopologyCache::of(WorldKey key, const std::function<ReplayTopology()>& make) {
  Known* known = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto same = std::find_if(all_.begin(), all_.end(), [&](const Known& other) { return other.key == key; });
    if (same == all_.end()) all_.emplace_back().key = std::move(key);
    known = same == all_.end() ? &all_.back() : &*same;
  }
  std::call_once(known->once, [&] { known->topology = make(); });
  return known->topology;
}

}  // namespace trivium::simulator
