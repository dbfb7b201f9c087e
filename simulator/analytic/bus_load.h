// How long traffic keeps a device's bus busy: its way to the host's memory and to the adapters, which copies and
// collectives share.
#pragma once

#include <cstdint>

#include "hardware_profiles/hardware.h"
#include "program/ir/program.h"
#include "simulator/cost/part_work.h"

namespace trivium::simulator {

/// Serves ranks of one stage. Claims nothing (0) on clusters of heterogeneous nodes and where lanes are merged.
class BusLoad {
 public:
  /// `cluster`: as the ranks of the program's plan see it. Both must outlive it.
  BusLoad(const program::Program& program, const hardware::Cluster& cluster, int stage);

  /// What moves `bytes` takes `ps` alone. The bus of each rank of the stage is busy for no less than this in one
  /// direction, in both for a collective, when it has ended (ps); 0 for what computes.
  std::int64_t of(program::OpKind kind, program::Group group, double bytes, std::int64_t ps);

 private:
  double carried(program::OpKind kind, program::Group group, double bytes, double seconds);  // bytes, one way

  const program::Program& program_;
  const hardware::Cluster& cluster_;
  GroupPlaces places_;
  double capacity_ = 0;  // B/s, at most; 0: nothing is claimed
};

}  // namespace trivium::simulator
