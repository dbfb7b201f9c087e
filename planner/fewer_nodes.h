// Whether a part of the nodes is faster than all of them: a count that divides well may be worth idle nodes.
#pragma once

#include <stop_token>
#include <vector>

#include "planner/search.h"

namespace trivium::planner {

/// Counts of nodes to search, the one whose busiest rank has the least to do first, of equals the larger: all of the
/// request's, and at most three of those that leave no more than a quarter idle and whose ranks cut the batch and the
/// layers so well that none has more to do than with all nodes. Of more than 64 counts only those with the most
/// divisors are weighed. Precondition: a cluster of one kind of node.
std::vector<int> counts_of_nodes(const SearchRequest& request);

/// Searches all nodes, and where the cluster is of one kind and the request leaves its devices open the other
/// counts_of_nodes() too: the first as asked, the others for plans that are faster than what is known by then. `best`
/// holds the best of all, `nodes_used` says where nodes stay idle. The space is that of all counts looked at.
SearchResult search_with_idle_nodes(const SearchRequest& request, int threads, const std::stop_token& stop,
                                    const Progress& progress);

}  // namespace trivium::planner
