// Replicas on clusters of heterogeneous nodes: each on nodes of one kind, with micro-batches of the size that suits
// them.
#pragma once

#include <stop_token>

#include "planner/search/result.h"
#include "planner/space/request.h"

namespace trivium::planner {

/// Plans in which no replica lies on nodes of two kinds: ranks fill the nodes in their order, replica after replica
/// (placement tensor-context-pipeline-data), and the replicas on a kind of nodes have micro-batches of one size (up to
/// 64). All replicas take the same number of micro-batches, so the sizes share the batch out. The other levels are
/// those of planner/space/space.h, without spread experts and shard groups.
///
/// Bound: with every replica as those of one kind are, on nodes of that kind alone, a plan takes the same passes, and
/// its reductions wait for nobody who is slower. So it is no slower there, for any of the kinds: the space of each
/// combination of sizes is searched on the kind that is the slowest by its layers, and what that search would simulate
/// is simulated as it is.
///
/// Plans slower than request.limit_ps are not looked for. Where the whole space is refused, `rejected` has one entry
/// that says why. Preconditions: several groups of nodes, request.ranks is 0.
SearchResult search_replica_kinds(const SearchRequest& request, int threads, const std::stop_token& stop,
                                  const Progress& progress);

/// The placement of such plans.
inline constexpr const char* kWholeReplicas = "tensor-context-pipeline-data";

}  // namespace trivium::planner
