// When no plan fits: the nearest requests for which one does.
#pragma once

#include <string>
#include <vector>

#include "planner/studies.h"

namespace trivium::planner {

/// One request that differs little and has a plan.
struct Relaxation {
  std::string words;  ///< "without --recompute none: recompute=full", "on 12 nodes"
  Candidate best;
};

/// Tries, one at a time: each given bound and each fixed field left open, features outside the space (flash attention,
/// ZeRO 2 and 3, offload of the optimizer, another precision), a batch that the fixed split divides, and the fewest
/// nodes that do. At most `most` of those that have a plan, in that order, or those
/// found until `effort.stop` asks to give it up. Any plan that fits will do: there may be one in half the time.
std::vector<Relaxation> relaxations(const SearchRequest& request, std::size_t most, const Effort& effort);

}  // namespace trivium::planner
