// Questions that take several searches: other clusters, other batches, other costs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "planner/search/search.h"

namespace trivium::planner {

/// Where and how long the searches of a study run.
struct Effort {
  int threads = 0;  ///< 0: all cores
  std::stop_token stop;
  std::function<void(const std::string&)> says{};  ///< what is looked at next, where it takes several searches
};

/// The request on `nodes` nodes of a cluster of one kind; all devices are used. Precondition: homogeneous.
SearchRequest on_nodes(const SearchRequest& request, int nodes);

/// The best plan of one search; nothing where none fits, which is found without a search where memory alone says so.
std::optional<Candidate> best_plan(const SearchRequest& request, const Effort& effort);

/// Pareto front of time against memory: the fastest plan, then the fastest among those that need at most 95 % of its
/// memory (without what the device reserves), and so on until none fits. No plan is both faster and smaller than one of
/// the front, to those 5 %.
std::vector<Candidate> memory_front(const SearchRequest& request, const Effort& effort);

/// The best plan on some of the devices.
struct ScalePoint {
  int ranks = 0, nodes = 0;
  std::int64_t global_batch = 0;
  std::optional<Candidate> best;
  std::string refused;    ///< why there is none, and the nearest request that has one
  double efficiency = 0;  ///< tokens per second and device, over the most of any point: at most 1
};

/// Strong scaling: the same batch on every count of devices. Weak scaling: the batch shrinks with the devices from that
/// of the request, which is for the largest count. Precondition: a homogeneous cluster.
std::vector<ScalePoint> scaling(const SearchRequest& request, const std::vector<int>& ranks, bool weak,
                                const Effort& effort);

/// Pareto front of calendar time against money for the training on all tokens: of the best plans on all of the
/// cluster's nodes, on half of them and so on, those that no other beats in both, fastest first. Empty where a node has
/// no price or the job does not say its tokens. Precondition: a homogeneous cluster.
struct CostPoint {
  int nodes = 0;
  Candidate best;
  double seconds = 0, cost_usd = 0;
};
std::vector<CostPoint> cost_front(const SearchRequest& request, const Effort& effort);

/// Counts of devices to look at: all of the cluster, its half, … down to a 64th or 1, ascending.
std::vector<int> scale_counts(int devices);

/// The fewest nodes whose best plan is expected to train `total_tokens` within `seconds`, found by doubling and halving
/// from the fewest whose peak could do the work: counts in between may fit by chance of their divisors.
struct DeadlineAnswer {
  int nodes = 0;  ///< 0: none up to `tried`
  int tried = 0;  ///< the largest count looked at
  std::optional<Candidate> best;
  double seconds = 0;  ///< the training takes
};
DeadlineAnswer smallest_cluster(const SearchRequest& request, double seconds, const Effort& effort);

/// A range that a study walks by doubling.
struct Doublings {
  std::int64_t least = 0, most = 0;
};
/// "256:4096". Errors: kUsage, saying how it is written; `unit`: what is counted, "samples".
base::Result<Doublings> parse_doublings(std::string_view text, std::string_view unit);

/// One batch of a range. With a critical batch B* in tokens, a batch of B tokens needs 1 + B / B* times the tokens of
/// the smallest batch (McCandlish et al. 2018, arXiv 1812.06162, eq. 2.11: E = E_min (1 + B / B*)).
struct BatchPoint {
  std::int64_t global_batch = 0;
  std::optional<Candidate> best;
  double tokens_needed = 0;     ///< relative to the smallest batch; 1 where no critical batch is said
  double relative_seconds = 0;  ///< of the training, over that of the fastest batch
};
std::vector<BatchPoint> batches(const SearchRequest& request, Doublings range, double critical_batch_tokens,
                                const Effort& effort);

/// One length of the sequences. A step keeps its tokens as nearly as whole samples allow, with one sample at least.
struct SequencePoint {
  std::int64_t sequence = 0, global_batch = 0;
  std::optional<Candidate> best;
};
/// Rotary positions have no longest sequence: a model that is asked for a longer one is taken as trained on it.
std::vector<SequencePoint> sequences(const SearchRequest& request, Doublings lengths, const Effort& effort);

/// What a change of the hardware brings.
struct Sensitivity {
  std::string change;  ///< "network twice as fast"
  std::optional<Candidate> best;
  double gain = 0;  ///< of throughput: 0.1 is 10 % more
};
std::vector<Sensitivity> sensitivities(const SearchRequest& request, const Candidate& best, const Effort& effort);

/// The candidates under costs that are off by a share, one kind of cost at a time in both directions.
struct Robustness {
  struct Case {
    std::string change;  ///< "compute 10 % slower"
    std::string winner;  ///< summary of the fastest candidate then
    bool stays = false;  ///< the chosen plan is still the fastest of the candidates
    double regret = 0;   ///< what the chosen plan loses to the winner
  };
  std::vector<Case> cases;
  bool stays = true;  ///< in all cases
  double worst_regret = 0;
};
Robustness robustness(const SearchRequest& request, const std::vector<Candidate>& candidates, double share);

}  // namespace trivium::planner
