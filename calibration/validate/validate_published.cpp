// Tables of published runs, replayed.
#include <map>

#include "calibration/measurements/published_runs.h"
#include "calibration/measurements/statistics.h"
#include "calibration/replay/replay.h"
#include "calibration/validate/groups.h"
#include "calibration/validate/sweeps.h"
#include "calibration/validate/validate.h"
#include "simulator/memory/crowding.h"

namespace trivium::calibration {
namespace {

/// Times and memory of one configuration, or why there are none.
struct Outcome {
  double iteration_s = 0;
  double peak_bytes = 0;
  std::optional<std::string> unsupported;
};

Outcome predict(const PublishedRun& run) {
  const auto granularity = needs_ops(run.job) ? simulator::Granularity::kOp : simulator::Granularity::kSegment;
  const auto result = replay(run.job, run.cluster, granularity);
  if (!result) return {0, 0, result.error().message};
  const auto& [prepared, simulation] = result.value();
  const double crowding = simulator::crowding(prepared.program(), run.cluster);
  return {simulation.iteration_s * crowding, static_cast<double>(simulation.peak_memory_bytes), std::nullopt};
}

ValidationRow row_of(const PublishedRun& run, const Outcome& outcome) {
  ValidationRow row;
  row.case_name = run.case_name;
  row.source = run.source;
  row.hardware = run.hardware;
  row.tier = run.tier;
  row.measured_iteration_s = run.iteration_s;
  row.measured_peak_bytes = run.peak_bytes;
  row.unsupported = outcome.unsupported;
  if (row.unsupported) return row;
  row.predicted_iteration_s = outcome.iteration_s;
  row.predicted_peak_bytes = outcome.peak_bytes;
  row.error = outcome.iteration_s / run.iteration_s - 1;
  return row;
}

std::vector<ValidationGroup> groups_of(const std::vector<ValidationRow>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<Pair>> pairs;
  for (const ValidationRow& row : rows) {
    if (row.unsupported || row.tier == "C") continue;
    const Pair pair{row.measured_iteration_s, row.predicted_iteration_s};
    pairs[{"source", row.source}].push_back(pair);
    pairs[{"hardware", row.hardware}].push_back(pair);
  }
  std::vector<ValidationGroup> groups;
  for (const auto& [key, cases] : pairs) groups.push_back(group_of(key.first, key.second, cases));
  return groups;
}

}  // namespace

Validation validate_published(const std::filesystem::path& csv) {
  const std::vector<PublishedRun> runs = read_published_runs(csv);
  Validation result;
  std::vector<SweepCase> cases;
  std::map<std::string, Outcome> known;  // repeats of a configuration differ in nothing that is simulated
  for (const PublishedRun& run : runs) {
    const auto [at, fresh] = known.try_emplace(run.sweep + " | " + run.plan);
    if (fresh) at->second = predict(run);
    result.rows.push_back(row_of(run, at->second));
    const ValidationRow& row = result.rows.back();
    if (row.unsupported || row.tier == "C") continue;
    const double samples = static_cast<double>(run.job.training.global_batch) / run.job.plan.ranks();
    cases.push_back({run.sweep, run.plan, row.measured_iteration_s, row.predicted_iteration_s, samples});
  }
  result.groups = groups_of(result.rows);
  result.sweeps = find_sweeps(cases);
  return result;
}

}  // namespace trivium::calibration
