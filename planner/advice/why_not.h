// Why a plan that someone has in mind is not the chosen one.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "program/plan/differences.h"
#include "simulator/predict/simulate.h"

namespace trivium::planner {

/// Where the second of two simulations of one job spends more or less time: sentences, the largest change first.
std::vector<std::string> where_they_differ(const simulator::Simulation& first, const simulator::Simulation& second);

struct WhyNot {
  std::string verdict;  ///< "same", "rule", "memory", "slower", "faster"
  std::string rule;     ///< of program::Infeasible; empty for plans that run
  std::vector<std::string> sentences;
  std::vector<program::Difference> differences;  ///< from the chosen plan to the other
  double iteration_s = 0;                        ///< of the other, simulated as by itself; 0: it does not run
  double bound_s = 0;  ///< the bound on it that a search sees; 0: it does not run, or its replicas differ
};

/// The rule that refuses `favourite`, the memory it lacks and the nearest change that makes it fit, or how much slower
/// than `chosen` it is, where, and whether a search would have had to simulate it. Both jobs run on `cluster`;
/// `chosen` must fit it. base::Failure (kInterrupted) where `stop` was requested while plans were simulated.
WhyNot why_not(const program::Job& chosen, const program::Job& favourite, const hardware::Cluster& cluster,
               const std::stop_token& stop = {});

}  // namespace trivium::planner
