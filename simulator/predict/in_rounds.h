// Jobs of many micro-batches, a few of which are simulated.
#pragma once

#include <optional>
#include <stop_token>

#include "simulator/iteration/rounds.h"
#include "simulator/iteration/simulation.h"
#include "simulator/predict/prepare.h"

namespace trivium::simulator {

/// How the job repeats itself, where it has so many micro-batches that it pays to count them, and may run with them.
/// Nothing else.
std::optional<SteadyState> rounds_to_simulate(const program::Job& job, const hardware::Cluster& cluster,
                                              std::int64_t worthwhile = kWorthwhile);

/// What follows needs kWorthwhileOnce, but for figures. Errors: as prepare(), `fits` being its option; kInterrupted.

/// What list_schedule_makespan() gives of the job lowered, counted likewise. Nothing where that cannot be.
base::Result<std::optional<std::int64_t>> list_schedule_makespan_in_rounds(const program::Job& job,
                                                                           const hardware::Cluster& cluster, bool fits);

/// The same of relaxed_makespan() of the job lowered and ordered.
base::Result<std::optional<std::int64_t>> relaxed_makespan_in_rounds(const program::Job& job,
                                                                     const hardware::Cluster& cluster, bool fits);

/// What iteration_ps() gives of the job lowered and ordered, counted as simulate_in_rounds() does it.
base::Result<std::optional<std::int64_t>> iteration_in_rounds(const program::Job& job, const hardware::Cluster& cluster,
                                                              const SimulationOptions& options, bool fits,
                                                              const std::stop_token& stop);

/// All figures, and the job of the few micro-batches that were simulated, in its order, not verified.
struct SimulatedInRounds {
  Simulation simulation;
  Prepared few;
};

/// What simulate() gives of the job lowered and ordered. A few of its micro-batches are ordered and simulated; where
/// all that is under way at one moment, of every lane of every distinct rank, came again a period later, to
/// the picosecond and in the order of readiness as in that of issue, the periods that are left out are counted. Nothing
/// where rounds_to_simulate() is nothing, where they do not repeat themselves, and where every rank or a timeline is
/// asked for: then all have to be simulated.
base::Result<std::optional<SimulatedInRounds>> simulate_in_rounds(const program::Job& job,
                                                                  const hardware::Cluster& cluster,
                                                                  const SimulationOptions& options, bool fits,
                                                                  const std::stop_token& stop);

}  // namespace trivium::simulator
