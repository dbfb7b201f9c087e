// Clusters of heterogeneous nodes: which of them to use, and how.
#pragma once

#include <stop_token>

#include "planner/search/result.h"
#include "planner/space/request.h"

namespace trivium::planner {

/// Searches four ways to use a cluster of several node groups, and returns the best plans of all of them:
/// - mixed: all nodes as they are, stages on groups with layers balanced over them;
/// - fast nodes only: the group whose devices have the highest peak in the plan's precision;
/// - all treated as slow: the plans of a cluster in which every node is like those with the lowest peak, what a user
///   gets who does not tell nodes apart; its best plan is then simulated on the real nodes;
/// - replicas by kind: whole replicas on nodes of one kind, with micro-batches of their own
///   (planner/search/replica_kinds.h). The first three run in parallel. Counts are sums over the four;
/// `alternatives` has the best of each. Preconditions: several groups, ranks is 0.
SearchResult search_mixed(const SearchRequest& request, int threads, std::stop_token stop, const Progress& progress);

}  // namespace trivium::planner
