// Bounds of a search's tree compared with the simulated iterations of plans below them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include "planner/search/search.h"

namespace trivium::planner {

/// A plan with the bounds on the way down to it. A bound that is larger than the iteration is none.
struct BoundPair {
  program::Plan plan;
  std::array<std::int64_t, 5> bounds_ps{};  ///< by level of the tree (Node::Level), as close as they get
  std::int64_t list_schedule_ps = 0;        ///< quick_bound(), where searches take it; else 0
  std::int64_t iteration_ps = 0;

  bool holds() const;
  /// The levels, the list schedule and the iteration in seconds.
  std::string text() const;
};

/// Down one path of the request's tree, a child chosen at random at every level. Nothing where all children of a node
/// are refused, or where more than `most_work` layers times micro-batches would be simulated.
std::optional<BoundPair> random_pair(const SearchRequest& request, std::mt19937& random, std::int64_t most_work);

/// A smaller job (fewer layers, smaller batch, fewer nodes) whose plans break a bound too, as small as a few hundred
/// tries find; the request itself where none does.
SearchRequest shrunk(const SearchRequest& request, std::mt19937& random, std::int64_t most_work);

}  // namespace trivium::planner
