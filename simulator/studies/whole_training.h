// What training on all the tokens takes: calendar time, energy, money.
#pragma once

#include <optional>

#include "simulator/iteration/simulation.h"

namespace trivium::simulator {

/// Calendar time, energy and price of training on all the tokens, as expected: half of the trainings take less. All
/// three grow with the iteration.
struct WholeTraining {
  double seconds = 0;
  double energy_joules = 0;
  std::optional<double> cost_usd;  ///< empty where a node has no price
  double least = 1, most = 1;      ///< ends of the 90 % interval of each, over what is expected
};

/// Power: the peak of every device used and the overhead of every node used. Price: of every node used, whole.
/// Empty when the job does not say `total_tokens`.
std::optional<WholeTraining> whole_training(const program::Job& job, const hardware::Cluster& cluster,
                                            const Simulation& simulation);

}  // namespace trivium::simulator
