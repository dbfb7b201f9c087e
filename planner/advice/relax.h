// When no plan fits: the nearest requests for which one does.
#pragma once

#include <string>
#include <vector>

#include "planner/advice/studies.h"

namespace trivium::planner {

/// One request that differs little and has a plan.
struct Relaxation {
  std::string words;  ///< "without --recompute none: recompute=full", "on 12 nodes"
  Candidate best;
  program::Job job;  ///< that it is a plan for
  hardware::Cluster cluster;
};

/// Tries, one at a time: each given bound and each fixed field left open, values outside the space (another precision,
/// context ranks, attention and offload of the optimizer where a search does not open them), a batch that the fixed
/// split divides, and the fewest nodes that work. At most `most` of those that have a plan, in that order, or those
/// found until `effort.stop` is requested. Any plan that fits will do, and only the smallest are looked at (whole
/// micro-batches one after another, nothing overlapping the passes, stages alike): there may be much faster ones.
std::vector<Relaxation> relaxations(const SearchRequest& request, std::size_t most, const Effort& effort);

}  // namespace trivium::planner
