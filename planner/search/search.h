// Exact search over the plans of a job on a cluster.
#pragma once

#include <stop_token>

#include "planner/search/result.h"
#include "planner/space/request.h"

namespace trivium::planner {

/// Searches on `threads` threads (0: all cores). Plans are ranked by the iteration that simulating each alone gives:
/// ordered, op by op, links shared. Interrupted by `stop`, it returns the best so far with `proved` false. Whatever
/// else is simulated (`others`, a plan of another way to use the nodes) and beats the answer becomes the answer; where
/// it contradicts a bound, `proved` is false. Deterministic: the same
/// request gives the same answers and counts in the same order, whatever the threads.
/// On a cluster of one kind nodes may stay idle where that is faster (planner/search/fewer_nodes.h); on one of
/// different nodes all of whose devices may be used, four spaces are searched (planner/search/mixed.h). Errors: those
/// of with_fields_settled().
SearchResult search(const SearchRequest& request, int threads, std::stop_token stop, const Progress& progress);

}  // namespace trivium::planner
