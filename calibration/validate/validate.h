// Predicted against measured: runs of our own and published ones, replayed on the simulator.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "hardware_profiles/hardware.h"
#include "program/plan/plan_file.h"
#include "program/record/run_record.h"
#include "simulator/certainty/certainty.h"

namespace trivium::calibration {

struct PublishedRun;
namespace imports {
struct TrainingLog;
}

/// One measured case with its prediction.
struct ValidationRow {
  std::string case_name, source, hardware;
  std::string tier;  ///< A exact · B good · C digitised or with an unknown setting: reported, in no group
  double measured_iteration_s = 0;
  double predicted_iteration_s = 0;                                 ///< 0 where unsupported
  double error = 0;                                                 ///< predicted / measured - 1
  std::optional<double> measured_peak_bytes, predicted_peak_bytes;  ///< of the fullest rank
  std::optional<std::string> unsupported;  ///< why there is no prediction; such rows count in no error
  std::string software, precision;         ///< of published runs
  bool ran = true;                         ///< false: tried without a figure, of memory alone something is predicted
  std::optional<bool> predicted_fits;      ///< whether it fits the devices' memory, by the prediction
  /// Of published runs that are predicted: within which 90 of 100 measurements are expected, and that it fits.
  std::optional<simulator::PredictionInterval> interval_s, peak_interval_bytes;
  std::optional<double> fit_probability;
  simulator::Composition made_of;  ///< of published runs that are predicted
};

/// Errors of all cases with one thing in common. Fractions: predicted / measured - 1.
struct ValidationGroup {
  std::string by;  ///< "source", "hardware"; of one run: "step", "op", "lane", "rank", "wait", "memory"
  std::string name;
  int cases = 0;
  double mape = 0;    ///< mean of |error|
  double bias = 0;    ///< mean of error
  double median = 0;  ///< of |error|
  double max = 0;     ///< of |error|
  std::optional<double> spearman =
      std::nullopt;                    ///< rank correlation of predicted and measured; none where it is not defined
  double measured = 0, predicted = 0;  ///< means of the cases: s, of "memory" bytes
  int told = 0;                        ///< rows of every tier, run or not, with a prediction whether they fit
  int told_rightly = 0;                ///< those that fit and ran, or neither
  int within = 0;                      ///< of `cases`, those whose measurement lies in its interval
};

/// One prediction with its measurement, for a plot.
struct ParityPoint {
  std::string name;
  double measured = 0, predicted = 0;  ///< s
};

/// What one rank did from when to when; waiting for others is left out.
struct Bar {
  int rank = 0;
  std::string what;  ///< op kind
  double begin_s = 0, end_s = 0;
};

/// One step twice, from its start.
struct TimelinePair {
  int step = 0;  ///< of the run: the one nearest to the median
  std::vector<Bar> predicted, measured;
};

/// How well some plans of a sweep are told apart.
struct SweepOrder {
  int plans = 0;
  double regret = 0;  ///< measured time of the plan predicted fastest, over the best measured, - 1
  /// The same where the choice is `trivium plan`'s: among plans that fit with a probability of 0.95, if there are any.
  double regret_of_fitting = 0;
  double spread = 0;  ///< slowest plan over the best measured, - 1
  std::optional<double> spearman = std::nullopt;
};

/// Plans of one model, machine and batch that were all measured.
struct Sweep : SweepOrder {
  std::string name;
  double repeat_spread = 0;  ///< of equal plans, the largest: slowest over fastest measured, - 1; 0 without repeats
  double samples_per_device = 0;
  /// Of the plans that were measured at 10 % MFU or more, where those are three or more: below, something else than the
  /// plan decides.
  std::optional<SweepOrder> well_used = std::nullopt;
  /// Whether an order can be judged: five plans or more, two samples a device, 5 % between them.
  bool tells(const SweepOrder& order) const;
  double tolerated() const;  ///< the regret that repeats explain: the larger of 1 % and their spread
};

struct Validation {
  std::vector<ValidationRow> rows;
  std::vector<ValidationGroup> groups;
  std::vector<Sweep> sweeps;
  std::vector<ParityPoint> points;        ///< of one run: every op kind on every rank, seconds a step
  std::optional<TimelinePair> timelines;  ///< of one run that kept its timeline
};

/// Simulates the plan on the cluster op by op and compares it with its run. The row is the iteration (median of the
/// steps but the first) and the fullest rank's memory. Groups, the largest difference in seconds first: "step", every
/// measured step against the prediction; "op", "lane" and "rank", the time at work over all ranks, one case a step;
/// "wait", the time ranks waited for others at collectives; "memory", one case a rank. A collective's own work is that
/// of the member which waited least (OpEvent); the predicted lateness of hosts counts as waiting too, so that late
/// hosts do not look like an error of the collective. Transfers overlap concurrent work and are compared through the
/// step alone. Where the record was made of another Program than this plan lowers to, the row's source says so, and ops
/// are compared by kind alone. A plan that the cluster cannot run gives an unsupported row. Errors: Failure(kInput) for
/// a record without steps; Failure(kInterrupted) where `stop` was requested.
Validation validate_run(const program::PlanFile& plan, const program::RunRecord& record,
                        const hardware::Cluster& cluster, const std::stop_token& stop = {});

/// The same against the log of another trainer: its typical iteration, its steps and its memory. Errors as above.
Validation validate_log(const program::PlanFile& plan, const imports::TrainingLog& log,
                        const hardware::Cluster& cluster, const std::stop_token& stop = {});

/// Replays a table of published runs (validation/README.md has the columns). Errors: Failure(kInput) as
/// `FILE:LINE: column: …`; what the simulator cannot replay is an unsupported row, not an error.
Validation validate_published(const std::filesystem::path& csv);
/// Of these runs, whose rows are in their order.
Validation validate_published(const std::vector<PublishedRun>& runs);

/// Seconds of an iteration as predicted, a crowded allocator counted; none of a run that cannot be replayed.
std::optional<double> predicted_iteration_s(const PublishedRun& run);

/// Schema `trivium.validation/1`.
nlohmann::json to_json(const Validation& validation);

/// For people. Of one run (kMain): a headline, the machine's noise, and the ops that make the difference. Of a table,
/// and with kAll of a run too: a headline, groups, sweeps, then rows with the worst first.
enum class Detail { kMain, kAll };
std::string to_table(const Validation& validation, Detail detail = Detail::kMain);

/// One line a row and a group, under one header: `what` is "row" or the group's `by`.
std::string to_csv(const Validation& validation);

}  // namespace trivium::calibration
