// The best plan of each family (equal tensor, context, pipeline, data and expert) that a search did not choose.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "planner/bound/tree.h"

namespace trivium::planner {

/// A plan that was simulated.
struct SimulatedPlan {
  program::Plan plan;
  std::int64_t iteration_ps = 0;
  std::string summary;
  /// Ties go to the plan that overlaps more, then by what people read: the answer does not depend on the order of the
  /// space.
  bool operator<(const SimulatedPlan& other) const;
};

/// How many of the collectives that training frameworks overlap by default run next to computation.
int overlaps(const program::Plan& plan);

/// The plan with collectives overlapped that it runs apart, the most of them first, as far as the request allows it.
std::vector<program::Plan> with_more_overlap(const program::Plan& plan, const SearchRequest& request);

struct HigherBound {
  bool operator()(const Node& a, const Node& b) const { return b < a; }
};
/// The node with the lowest bound is on top.
using OpenNodes = std::priority_queue<Node, std::vector<Node>, HigherBound>;

/// How a node that is a plan is looked at: its iteration (ps), kStopped, or why it cannot run.
using Judge = std::function<std::variant<std::int64_t, program::Infeasible>(const Node&)>;

/// How far a family's plan may be from its fastest one, and what it takes to find it.
struct FamilySearch {
  std::function<Expansion(const Node&)> open;  ///< Tree::open
  Judge quick_bound, time;                     ///< planner/bound/evaluate.h
  /// Family of the split that the node is below, a number of the caller's choice.
  std::function<int(const Node&)> family;
  std::function<std::int64_t(const Node&)> micro_batches;
  std::size_t wanted = 0;      ///< families
  double gap = 0;              ///< a plan of a family that is faster by no more than this share need not be found
  std::int64_t most_work = 0;  ///< no further family once so many micro-batches were looked at
  int threads = 1;
  std::stop_token stop;
};

/// The best plans of the families in which they are found first, which are the fastest families: best-first search with
/// a limit for each. `nodes`: what is left of the tree. `known`: by family, the best plan that was simulated before.
/// Families in `seen` are left out. Plans with their iterations (ps). Independent of the number of threads.
std::vector<std::pair<program::Plan, std::int64_t>> best_of_families(
    OpenNodes nodes, const std::map<int, std::pair<Node, std::int64_t>>& known, const std::set<int>& seen,
    const FamilySearch& search);

}  // namespace trivium::planner
