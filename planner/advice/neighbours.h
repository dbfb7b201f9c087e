// Plans one change away, and what the simulator says of each.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "planner/search/search.h"

namespace trivium::planner {

/// A plan that differs in one decision; the ranks stay the same.
struct Neighbour {
  std::string change;       ///< "tensor 8 to 4, data 8 to 16"
  simulator::Part against;  ///< the part of an iteration that such a change aims at
  program::Plan plan;
};

/// Halved and doubled tensor, pipeline, micro-batch; fewer and more virtual stages; the backward split or whole; every
/// other recomputation; ZeRO, sequence parallel and overlapped gradient reduction switched. Those that program::check
/// refuses are left out.
std::vector<Neighbour> neighbours(const program::Job& job);

/// A neighbour simulated: its iteration (ps, segment granularity) or why it cannot run.
struct Tried {
  Neighbour neighbour;
  std::variant<std::int64_t, program::Infeasible> outcome;
  bool narrow = false;  ///< it fits with a probability below kFitProbability: searches leave it out
  bool fits() const { return outcome.index() == 0; }
  std::int64_t iteration_ps() const { return std::get<0>(outcome); }
};

/// All neighbours simulated on all cores, in the order of `neighbours`. Nothing where `stop` was requested.
std::vector<Tried> try_neighbours(const program::Job& job, const hardware::Cluster& cluster,
                                  const std::stop_token& stop = {});

}  // namespace trivium::planner
