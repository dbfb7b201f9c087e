// What became of a Program that was simulated, and the figures that follow from it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simulator/iteration/simulation.h"
#include "simulator/replay/replay.h"

namespace trivium::simulator {

/// Picoseconds by part, of up to a million ranks: whole numbers beyond 64 bits.
using Sums = std::array<long double, kParts>;

/// Its makespan, and what its ranks' spans add up to.
struct SimulationTrace {
  std::int64_t makespan_ps = 0;
  std::vector<Sums> sums;             // by role: over `sampled` ranks of it
  std::vector<std::int64_t> sampled;  // by role
  std::int64_t flows = 0;             // that were simulated over shared links
  program::Timeline timeline;
};

/// One rank for all that sit alike. Ranks that share cores take turns on them, op by op. Errors: as compiled().
base::Result<ReplayProgram> replay_program_for(const CostedProgram& costed, const SimulationOptions& options);

/// An ordered program is replayed; one without an order is simulated in the order of readiness, one rank for every
/// role. `also` hears of the ranks too. Errors: as simulate().
base::Result<SimulationTrace> trace_of(const CostedProgram& costed, const SimulationOptions& options,
                                       const std::stop_token& stop, const Listener& also = {});

/// The figures of `job` that was simulated so. `program`: its roles and mesh; of fewer micro-batches, it may be.
/// `memory`: of its roles.
Simulation figures_of(const program::Job& job, const program::Program& program, const std::vector<StageMemory>& memory,
                      const hardware::Cluster& cluster, SimulationTrace trace);

}  // namespace trivium::simulator
