// How long traffic keeps a device's bus busy: its way to the host's memory and to the adapters, which copies and
// collectives share.
#pragma once

#include <cstdint>

#include "hardware_profiles/hardware.h"
#include "program/ir/program.h"

namespace trivium::simulator {

/// Serves ranks of one stage. Claims nothing (0) on clusters of heterogeneous nodes and where lanes are merged.
class BusLoad {
 public:
  /// `cluster`: as the ranks of the program's plan see it. Both must outlive it.
  BusLoad(const program::Program& program, const hardware::Cluster& cluster, int stage);

  /// The bus of each rank of the stage is busy for no less than this in one direction, in both for a collective, when
  /// the op, which takes `ps` alone, has ended (ps).
  std::int64_t of(const program::Op& op, std::int64_t ps) const;

 private:
  double carried(const program::Op& op, double seconds) const;  // bytes, one way

  const program::Program& program_;
  const hardware::Cluster& cluster_;
  int rank_;
  double capacity_ = 0;  // B/s, at most; 0: nothing is claimed
};

}  // namespace trivium::simulator
