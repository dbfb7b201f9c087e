// Predicted against measured: runs of our own and published ones, replayed on the simulator.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "hardware_profiles/hardware.h"
#include "program/plan_file.h"
#include "program/run_record.h"

namespace trivium::calibration {

/// One measured case beside its prediction.
struct ValidationRow {
  std::string case_name, source, hardware;
  std::string tier;  ///< A exact · B good · C digitised or with an unknown setting: reported, in no group
  double measured_iteration_s = 0;
  double predicted_iteration_s = 0;                                 ///< 0 where unsupported
  double error = 0;                                                 ///< predicted / measured - 1
  std::optional<double> measured_peak_bytes, predicted_peak_bytes;  ///< of the fullest rank
  std::optional<std::string> unsupported;  ///< why there is no prediction; such rows count in no error
};

/// Errors of all cases with one thing in common. Fractions: predicted / measured - 1.
struct ValidationGroup {
  std::string by;  ///< "source", "hardware", "op" or "rank"
  std::string name;
  int cases = 0;
  double mape = 0;    ///< mean of |error|
  double bias = 0;    ///< mean of error
  double median = 0;  ///< of |error|
  double max = 0;     ///< of |error|
  std::optional<double> spearman =
      std::nullopt;  ///< rank correlation of predicted and measured; none where it is not defined
};

/// Plans of one model, machine and batch that were all measured.
struct Sweep {
  std::string name;
  int plans = 0;
  double regret = 0;         ///< measured time of the plan predicted fastest, over the best measured, - 1
  double repeat_spread = 0;  ///< of equal plans, the largest: slowest over fastest measured, - 1; 0 without repeats
  double spread = 0;         ///< slowest plan over the best measured, - 1
  double samples_per_device = 0;
  std::optional<double> spearman = std::nullopt;
  /// Whether the order of its plans can be judged: five plans or more, two samples a device, 5 % between them.
  bool tells_order() const;
  double tolerated() const;  ///< the regret that repeats explain: the larger of 1 % and their spread
};

struct Validation {
  std::vector<ValidationRow> rows;
  std::vector<ValidationGroup> groups;
  std::vector<Sweep> sweeps;
};

/// Simulates the plan on the cluster op by op and compares it with its run: the row is the iteration (median of the
/// steps but the first) and the fullest rank's memory; groups "op" hold one case per step, groups "rank" the busy time
/// of a rank's compute lane and collectives. Waits for partners are taken out of communication on both sides. Where the
/// record was made of another Program than this plan lowers to, the row's source says so and ops are compared by kind
/// alone. A plan that the cluster cannot run gives an unsupported row. Errors: Failure(kInput) for a record without
/// steps.
Validation validate_run(const program::PlanFile& plan, const program::RunRecord& record,
                        const hardware::Cluster& cluster);

/// Replays a table of published runs (validation/README.md has the columns). Errors: Failure(kInput) as
/// `FILE:LINE: column: …`; what the simulator cannot replay is an unsupported row, not an error.
Validation validate_published(const std::filesystem::path& csv);

/// Schema `trivium.validation/1`.
nlohmann::json to_json(const Validation& validation);

/// For people: groups, sweeps, then rows with the worst first.
std::string to_table(const Validation& validation);

}  // namespace trivium::calibration
