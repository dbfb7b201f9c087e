// Whether a part of the nodes is faster than all of them: a count that divides well may be worth idle nodes.
#pragma once

#include <stop_token>
#include <vector>

#include "planner/search.h"

namespace trivium::planner {

/// Counts of nodes to look at beside all `nodes`: of those that leave at most a quarter idle the three with the most
/// divisors, if more than `nodes` has; of equals the larger.
std::vector<int> counts_beside(int nodes);

/// Searches all nodes, and where the cluster is of one kind and the request leaves its devices open, counts_beside()
/// too, for plans that are faster than what is known by then. `best` holds the best of all; `nodes_used` and
/// `all_nodes_s` say where nodes stay idle. The space is that of all counts looked at.
SearchResult search_with_idle_nodes(const SearchRequest& request, int threads, const std::stop_token& stop,
                                    const Progress& progress);

}  // namespace trivium::planner
