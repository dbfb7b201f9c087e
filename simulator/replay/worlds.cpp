#include "simulator/replay/worlds.h"

#include <algorithm>

namespace trivium::simulator {

World Worlds::of(WorldKey key, const std::function<World()>& make) {
  Known* known = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto same = std::find_if(all_.begin(), all_.end(), [&](const Known& other) { return other.key == key; });
    if (same == all_.end()) all_.emplace_back().key = std::move(key);
    known = same == all_.end() ? &all_.back() : &*same;
  }
  std::call_once(known->once, [&] { known->world = make(); });
  return known->world;
}

}  // namespace trivium::simulator
