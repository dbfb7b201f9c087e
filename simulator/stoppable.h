// Simulations for callers who may lose interest: they end soon after they are asked to, without a result.
#pragma once

#include <functional>
#include <stop_token>

#include "simulator/engine/stoppable.h"
#include "simulator/simulate.h"
#include "simulator/uncertainty.h"

namespace trivium::simulator {

/// As without `stop`; kInterrupted where it was asked for, before the start or while ranks were played.
base::Result<Simulation> simulate(const program::Program& program, const hardware::Cluster& cluster,
                                  const SimulationOptions& options, const std::stop_token& stop);
base::Result<Uncertainty> sample_iterations(const program::Program& program, const hardware::Cluster& cluster,
                                            const Disturbance& disturbance, int samples, std::uint64_t seed,
                                            const std::stop_token& stop);
/// The samples that were played when `stop` came, in the order of their seeds; kInterrupted where there are none.
/// `played` hears how many there are by then, from one thread at a time of those that play them.
base::Result<Uncertainty> sample_until(const program::Program& program, const hardware::Cluster& cluster,
                                       const Disturbance& disturbance, int samples, std::uint64_t seed,
                                       const std::stop_token& stop, const std::function<void(int)>& played);

}  // namespace trivium::simulator
