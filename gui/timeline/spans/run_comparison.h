// Predicted above measured: one step of a run compared with the simulation of its plan, op by op.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "gui/timeline/spans/span_store.h"
#include "hardware_profiles/hardware.h"
#include "program/plan/plan_file.h"
#include "program/record/run_record.h"

namespace trivium::gui {

/// An op that both sides know: the key (step, rank, task, op) is the same. Waiting for partners is in neither time.
struct MatchedOp {
  int rank = 0;
  Category category = Category::kOther;
  program::OpKind kind{};
  double predicted_s = 0, measured_s = 0;
  std::int64_t start_ps = 0, end_ps = 0;  ///< measured, from the step's start
};

struct RunComparison {
  int step = 0;
  std::vector<int> steps;                  ///< that the record holds events of
  std::shared_ptr<const SpanStore> spans;  ///< per rank and lane: predicted, measured, error
  std::vector<MatchedOp> ops;              ///< transfers are not among them: their spans say when they were posted
  std::size_t unmatched = 0;               ///< measured events without a predicted event
  std::int64_t predicted_ps = 0, measured_ps = 0;  ///< length of the step, from its first event to its last
  double step_s = 0;  ///< of the step as the run recorded it; where it did not, as long as its events
  double run_s = 0;   ///< median of the run's steps, which its validation takes; 0: no step is recorded
  int run_steps = 0;  ///< whose median it is
};

/// Sums of matched ops with one thing in common.
struct ComparedGroup {
  std::string name;
  double predicted_s = 0, measured_s = 0;
  double mape = 0;  ///< mean of |predicted / measured - 1| over its ops
  std::size_t ops = 0;
  double error() const { return measured_s > 0 ? predicted_s / measured_s - 1 : 0; }
};

/// What colour and words an error (predicted / measured - 1) has: 0 far too short … 3 right … 6 far too long.
int error_class(double error);
std::string error_words(int error_class);

/// `step` -1: the one nearest to the run's median among those that have events, the first left out where
/// there are others (it warms caches). Ranks are compared with the simulated rank of their stage. The error
/// lane shows an op where and as long as it was measured. Errors: Failure(kInput) for a record without
/// events or a plan that cannot be simulated on the cluster, Failure(kInterrupted) where `stop` was
/// requested.
RunComparison compare_run(const program::PlanFile& plan, const hardware::Cluster& cluster,
                          const program::RunRecord& record, int step = -1, const std::stop_token& stop = {});

/// By op kind, the most measured time first; of the ops that touch [begin, end).
std::vector<ComparedGroup> groups_by_kind(const RunComparison& comparison, std::int64_t begin_ps, std::int64_t end_ps);

}  // namespace trivium::gui
