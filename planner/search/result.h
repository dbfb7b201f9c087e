// What a search answers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "program/plan/plan.h"
#include "simulator/predict/simulate.h"

namespace trivium::planner {

struct Candidate {
  program::Plan plan;
  simulator::Simulation simulation;  ///< without timeline; plans are ranked by its iteration
};

/// A family of plans (equal tensor, pipeline, data) and why none of it, or how many of it, fell out.
struct Rejected {
  std::string family;  ///< "TP8 PP16 DP8"
  std::string rule;    ///< of program::Infeasible
  std::string reason;  ///< of one example of it
  std::int64_t plans = 0;
};

/// One way to use a cluster of heterogeneous nodes, and the best plan it allows.
struct Alternative {
  std::string name;               ///< "mixed", "fast nodes only", "all treated as slow", "replicas by kind"
  std::string nodes;              ///< which nodes: "dgx-a100-80gb:16"
  std::optional<Candidate> best;  ///< on the whole cluster, as it would run there
  std::string why_not;            ///< where there is none: the commonest reason
  std::int64_t plans = 0;         ///< of its space
};

struct SearchResult {
  std::vector<Candidate> best;    ///< fastest first; ties broken by summary text
  std::vector<Candidate> others;  ///< of other families than the best ones, fastest first
  std::vector<Rejected> rejected;
  std::int64_t plans_in_space = 0;
  std::int64_t plans_forbidden = 0;   ///< left out by a constraint before the space was counted
  std::int64_t plans_infeasible = 0;  ///< refused by a rule, or too large for the memory
  std::int64_t plans_bounded = 0;     ///< neither refused nor simulated: a proven lower bound is above the k-th best
  std::int64_t plans_simulated = 0;
  std::int64_t nodes_opened = 0;  ///< of the space's tree
  bool proved = false;            ///< every plan was either refused, bounded away or simulated
  double bound_s = 0;             ///< no plan of the space is faster than this; 0: nothing is known yet
  double best_s = 0;              ///< the fastest plan; 0: none
  double seconds = 0;
  int nodes_used = 0;                     ///< where some stay idle, as that is faster: how many do not; 0: all are used
  std::vector<Alternative> alternatives;  ///< on a cluster of heterogeneous nodes; `best` holds the best of all of them
};

/// Called from the calling thread now and then: plans done, plans in all, best iteration so far (s, 0 for none).
using Progress = std::function<void(std::int64_t, std::int64_t, double)>;

}  // namespace trivium::planner
