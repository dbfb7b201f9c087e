// Exact search over the plans of a job on a cluster: branch and bound with the event simulator as judge.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "planner/constraints.h"
#include "simulator/simulate.h"

namespace trivium::simulator {
class SharedCosts;
}

namespace trivium::planner {

/// Layers times micro-batches that are simulated for SearchRequest::others; two plans are shown in any case.
constexpr std::int64_t kWorkOnOthers = 60'000;

/// What stands for a request's plans where they are played: the replicas' micro-batches and the nodes they are on.
struct PlayedAs {
  hardware::Cluster cluster;
  std::int64_t global_batch = 0;
  std::vector<int> replica_micro_batch;
};

/// What is searched. Fields the user fixed keep their value in `job.plan`; all others of the space are opened
/// (planner/space.h lists them with their values). Fields outside the space (precision, attention, reduce_dtype,
/// bucket_bytes, stack) are as in `job.plan`. Plans that a constraint does not allow are no part of it.
struct SearchRequest {
  program::Job job;
  hardware::Cluster cluster;
  std::set<std::string> fixed;  ///< names of plan fields that keep the job's value
  int ranks = 0;                ///< devices to use; 0: all
  int best = 10;                ///< how many answers
  bool ignore_memory = false;
  bool distinct = false;  ///< of each family (equal tensor, pipeline, data) the fastest alone
  std::vector<Constraint> constraints;
  /// A plan that is faster by no more than this share of the k-th best need not be found. 0: the answer is exact.
  double gap = 0;
  /// Plans of other families shown beside the best: of each the one that looked fastest, simulated. They prove nothing.
  /// Fewer are shown where simulating them takes long (kWorkOnOthers).
  int others = 0;
  /// Plans are bounded as they are, and played, answered and named as this says, where none may be faster or need less.
  /// `plans_forbidden` then stays 0.
  std::optional<PlayedAs> played_as;
  /// Where searches leave costs for each other: of the same model, training and kind of nodes. None: for itself.
  std::shared_ptr<simulator::SharedCosts> costs{};
  std::int64_t limit_ps = std::numeric_limits<std::int64_t>::max();  ///< slower plans are not looked for
};

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

/// One way to use a cluster of unlike nodes, and the best plan it allows.
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
  std::vector<Alternative> alternatives;  ///< on a cluster of unlike nodes; `best` holds the best of all of them
};

/// Called from the calling thread now and then: plans done, plans in all, best iteration so far (s, 0 for none).
using Progress = std::function<void(std::int64_t, std::int64_t, double)>;

/// The request with lists as searches take them. Those of its plan that are not fixed by name are open, whatever the
/// plan holds there. Micro-batches by replica: with `replica_micro_batch` fixed, `data` is, too;
/// equal sizes are a fixed `micro_batch`. Fixed and empty, it leaves unlike sizes out. Errors: Failure(kUsage) where
/// `data` is fixed to another number, and where unlike sizes cannot be searched for: on like nodes, or on part of them.
SearchRequest with_lists_settled(SearchRequest request);

/// Searches on `threads` threads (0: all cores). Plans are ranked by the iteration that simulating each alone gives:
/// ordered, op by op, links shared. Interrupted by `stop`, it returns the best so far with `proved` false. Whatever
/// else is simulated (`others`, a plan of another way to use the nodes) and beats the answer becomes the answer; where
/// it contradicts a bound, `proved` is false. Deterministic: the same
/// request gives the same answers and counts in the same order, whatever the threads.
/// On a cluster of one kind nodes may stay idle where that is faster (planner/fewer_nodes.h); on one of unlike nodes
/// all of whose devices may be used, four spaces are searched (planner/mixed.h). Errors: those of with_lists_settled().
SearchResult search(const SearchRequest& request, int threads, std::stop_token stop, const Progress& progress);

/// The same over one space: all ranks of the request, on the nodes as they are.
SearchResult search_as_given(const SearchRequest& request, int threads, std::stop_token stop, const Progress& progress);

/// A plan of that space that fits, not simulated: of those with the lowest bounds the first that a search comes upon.
/// Nothing where none fits, or where `stop` came first. Errors: those of with_lists_settled().
std::optional<program::Plan> plan_that_fits(const SearchRequest& request, int threads, std::stop_token stop);

}  // namespace trivium::planner
