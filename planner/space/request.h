// What a search is asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hardware_profiles/hardware.h"
#include "planner/space/constraints.h"
#include "planner/space/trainers.h"
#include "program/plan/job.h"

namespace trivium::simulator {
class SharedCosts;
}

namespace trivium::planner {

/// SearchRequest::gap of an answer that is shown: a thousandth of the iteration, less than anybody can measure.
constexpr double kAnswerGap = 0.001;

/// Layers times micro-batches that may be simulated for SearchRequest::others, or what takes as long.
constexpr std::int64_t kWorkOnOthers = 400'000;

/// What stands for a request's plans where they are simulated: the replicas' micro-batches and the nodes they are on.
struct SimulatedAs {
  hardware::Cluster cluster;
  std::int64_t global_batch = 0;
  std::vector<int> replica_micro_batch;
};

/// What is searched. Fields the user fixed keep their value in `job.plan`; all others of the space are opened
/// (planner/space/space.h lists them with their values). Fields outside the space (precision, attention, reduce_dtype,
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
  const TrainerSpace* trainer = nullptr;  ///< only plans that it can run; null: what our own runtime can
  /// A plan that is faster by no more than this share of the k-th best need not be found. 0: the answer is exact.
  double gap = 0;
  /// Other families shown next to the best: of each the fastest plan, to 0.5 %. Fewer are shown where finding them
  /// takes long (kWorkOnOthers).
  int others = 0;
  /// Plans are bounded as they are, and simulated, answered and named as this says, where none may be faster or need
  /// less. `plans_forbidden` then stays 0.
  std::optional<SimulatedAs> simulated_as;
  /// Where searches leave costs for each other: of the same model, training and kind of nodes. None: for itself.
  std::shared_ptr<simulator::SharedCosts> costs{};
  std::int64_t limit_ps = std::numeric_limits<std::int64_t>::max();  ///< slower plans are not looked for
  /// Called from the searching thread whenever the best plans so far change: plans and their iterations (s), the
  /// fastest first. Of a search over several spaces each calls for itself.
  std::function<void(const std::vector<std::pair<program::Plan, double>>&)> on_ranking{};
  /// Called from the searching thread whenever it rises: no plan of the space on all nodes, or on as many as are looked
  /// at first, takes less (s). Searches over several spaces, of different nodes, do not tell it.
  std::function<void(double)> on_bound{};
};

/// The request for plans of one trainer alone. Precondition: the job's stack is the trainer's, or fixed. Errors:
/// Failure(kUsage) where a fixed field has a value that the trainer does not run.
SearchRequest for_trainer(SearchRequest request, const TrainerSpace& trainer);

/// Why the training leaves a field of the plan the value that it has in Plan{}; empty: it does not. Muon's momenta
/// stay where its products are (program::check_muon).
std::string_view held_by_training(const program::Training& training, std::string_view field);

/// Whether neither the user nor the training holds the field.
bool is_open(const SearchRequest& request, const std::string& field);

/// The request with lists as searches take them, and what its training holds at its value. Those of its plan that are
/// not fixed by name are open, whatever the plan holds there. On heterogeneous nodes an open placement
/// is the usual one. Micro-batches by replica: with `replica_micro_batch`
/// fixed, `data` is, too; equal sizes are a fixed `micro_batch`. Fixed and empty, it leaves different sizes out.
/// Errors: Failure(kUsage) where `data` is fixed to another number, and where different sizes cannot be searched for:
/// on like nodes, or on part of them.
SearchRequest with_fields_settled(SearchRequest request);

/// Devices may be filled so far that a plan fits with the probability asked for (0 < probability < 1), by what memory
/// of measured runs of the job's kind there came out at. 0: whole.
SearchRequest with_fit_probability(SearchRequest request, double probability);
constexpr double kFitProbability = 0.95;  ///< usual

}  // namespace trivium::planner
