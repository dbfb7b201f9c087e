// TopologyCache of actors kept for the next simulation that needs the same.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "simulator/replay/replay_program.h"
#include "simulator/replay/traffic.h"

namespace trivium::simulator {

/// All that the folded topology of a Program depends on, other than the cluster.
struct WorldKey {
  program::Mesh mesh;
  std::vector<int> replica_kinds, stage_nodes;
  std::vector<Channel> channels;
  std::vector<Traffic> traffic;  ///< by role
  bool operator==(const WorldKey&) const = default;
};

/// Folded topologies with shared links, all of one cluster. Plans that differ in what they recompute, or in when, have
/// the same. For use by several threads.
class TopologyCache {
 public:
  /// The topology of `key`, made where it is not known.
  ReplayTopology of(WorldKey key, const std::function<ReplayTopology()>& make);

 private:
  struct Known {
    WorldKey key;
    std::once_flag once;
    ReplayTopology topology;
  };
  std::mutex mutex_;
  std::list<Known> all_;
};

}  // namespace trivium::simulator
