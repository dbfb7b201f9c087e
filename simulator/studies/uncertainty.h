// How long an iteration takes when devices and moments differ: seeded Monte Carlo over every-rank simulations.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "base/error.h"
#include "simulator/cost/costed_program.h"
#include "simulator/replay/disturbance.h"

namespace trivium::simulator {

/// Iterations of every sample, ps, by seed.
struct Uncertainty {
  std::vector<std::int64_t> samples_ps;
  /// The value below which `share` of the samples lie, linear between neighbours (Hyndman and Fan's type 7), in ps.
  double quantile_ps(double share) const;
};

/// Simulates every rank at op level with seeds `seed`, `seed` + 1, …, on as many threads as there are cores: the result
/// does not depend on how many. The order of communication is the program's own in every sample. Errors: kUsage for a
/// rank that the program does not have; kRuntime when the program cannot proceed.
base::Result<Uncertainty> sample_iterations(const CostedProgram& costed, const Disturbance& disturbance, int samples,
                                            std::uint64_t seed, const std::stop_token& stop = {});

/// The samples that were simulated when `stop` came, in the order of their seeds; kInterrupted where there are none.
/// `simulated` hears how many there are by then, from one thread at a time of those that simulate them.
base::Result<Uncertainty> sample_until(const CostedProgram& costed, const Disturbance& disturbance, int samples,
                                       std::uint64_t seed, const std::stop_token& stop,
                                       const std::function<void(int)>& simulated);

}  // namespace trivium::simulator
