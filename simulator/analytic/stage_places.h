// What of the place of a stage its costs depend on, as small numbers.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "hardware_profiles/hardware.h"
#include "program/ir/mesh.h"

namespace trivium::simulator {

/// Numbers that are equal where the groups lie alike: of the groups that passes use, of those that reductions, gathers
/// and the norm use, of the transfers, and of the groups that passes of dense layers use: all but the experts'.
struct StagePlace {
  int passes = 0, state = 0, transfers = 0, dense = 0;
  bool operator==(const StagePlace&) const = default;
};

/// Serves plans of one job on one cluster. Thread-safe.
class StagePlaces {
 public:
  /// One entry for every stage. `placed`: the cluster as the ranks of the plan see it.
  std::shared_ptr<const std::vector<StagePlace>> of(const program::Plan& plan, const hardware::Cluster& placed);

 private:
  using Key = std::tuple<int, int, int, int, int, int, int, std::string, std::vector<int>, int>;

  std::vector<StagePlace> work_out(const program::Plan& plan, const hardware::Cluster& placed);
  std::vector<StagePlace> on_unlike_nodes(const program::Plan& plan, const hardware::Cluster& placed);
  StagePlace place_of(const program::Mesh& mesh, int stage, const hardware::Cluster& placed);
  int number_of(std::vector<int> place);

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const std::vector<StagePlace>>> known_;
  std::map<std::vector<int>, int> numbers_;
};

}  // namespace trivium::simulator
