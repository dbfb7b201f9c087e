// Whether a part of the nodes is faster than all of them: a count that divides well may be worth idle nodes.
#pragma once

#include <stop_token>
#include <vector>

#include "planner/search/result.h"
#include "planner/space/request.h"

namespace trivium::planner {

/// Counts of nodes to search: all of the request's, and at most three of those that leave no more than a quarter idle.
struct CountsOfNodes {
  std::vector<int> light;  ///< the busiest rank has no more to do than with all nodes: the lightest first
  std::vector<int> heavy;  ///< it has more, and may be faster all the same where what uses all is a poor split
};

/// What the busiest rank has to do follows from how well the ranks cut the batch and the layers. Of more than 64 counts
/// only those with the most divisors are weighed. Precondition: a cluster of one kind of node.
CountsOfNodes counts_of_nodes(const SearchRequest& request);

/// Searches all nodes, and where the cluster is of one kind and the request leaves its devices open the other light
/// counts_of_nodes() too, the heavy ones where that was soon done: the first as asked, the others for plans that are
/// faster than what is known by then. `best` holds the best of all, `nodes_used` says where nodes stay idle. The space
/// is that of all counts looked at.
SearchResult search_with_idle_nodes(const SearchRequest& request, int threads, const std::stop_token& stop,
                                    const Progress& progress);

}  // namespace trivium::planner
