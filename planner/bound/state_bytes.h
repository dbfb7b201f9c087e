// What a state adds to the memory of the passes, by stage.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "planner/space/space.h"
#include "simulator/analytic/cost_estimator.h"

namespace trivium::planner {

/// Of the states of a shape, each worked out when it is first asked for: bytes that it adds to those of the passes on
/// the device, and in the host's memory. They depend on neither the micro-batch nor the placement, nor on what is
/// recomputed. Thread-safe; cluster and costs must outlive it.
class StateBytes {
 public:
  struct Bytes {
    std::int64_t device = 0, host = 0;
  };
  using ByStage = std::vector<Bytes>;

  /// `plain`: the job under the shape with the state that adds least to the passes (ShardingChoice{}).
  StateBytes(program::Job plain, std::vector<ShardingChoice> states, const hardware::Cluster& cluster,
             simulator::SharedCosts& shared);

  std::size_t states() const { return states_.size(); }
  const ByStage& of(std::size_t state);

 private:
  ByStage work_out(const ShardingChoice& state) const;

  program::Job plain_;
  std::vector<ShardingChoice> states_;
  const hardware::Cluster& cluster_;
  simulator::SharedCosts& shared_;
  std::vector<std::size_t> alike_;             // by stage: the first with chunks of the same kinds
  std::vector<simulator::StageMemory> least_;  // by stage: of the plain state
  std::mutex mutex_;
  std::vector<std::unique_ptr<const ByStage>> known_;  // by state
};

}  // namespace trivium::planner
