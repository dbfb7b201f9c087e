// Tables of published runs, replayed.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <map>
#include <thread>

#include "calibration/measurements/published_runs.h"
#include "calibration/measurements/statistics.h"
#include "calibration/validate/groups.h"
#include "calibration/validate/peaks.h"
#include "calibration/validate/sweeps.h"
#include "calibration/validate/validate.h"
#include "simulator/predict/predict.h"

namespace trivium::calibration {
namespace {

/// Times and memory of one configuration, or why there are none.
struct Outcome {
  double iteration_s = 0;
  double peak_bytes = 0;  ///< of the fullest device
  double told_bytes = 0;  ///< of the device whose memory the trainer prints
  std::optional<bool> fits = std::nullopt;
  std::optional<std::string> unsupported = std::nullopt;
  std::optional<simulator::Certainty> certainty = std::nullopt;
};

double told_bytes(const program::Job& job, std::span<const simulator::StageMemory> stages, double peak_bytes) {
  const bool first = program::find_stack(job.plan.stack)->tells_first_rank;
  return first && !stages.empty() ? static_cast<double>(stages.front().total()) : peak_bytes;
}

/// What did not run has no time to be compared with: its memory alone is predicted. A plan that is refused (more stages
/// than layers) would not run either.
Outcome predict_memory(const PublishedRun& run) {
  const auto prepared = simulator::prepare(run.job, run.cluster, {.fits = false, .ordered = false, .verified = false});
  if (!prepared && prepared.error().kind == base::ErrorKind::kNoPlan) return {.fits = false};
  if (!prepared) return {.unsupported = prepared.error().message};
  double peak = 0, room = std::numeric_limits<double>::infinity();
  for (const simulator::StageMemory& stage : prepared.value().memory()) {
    peak = std::max(peak, static_cast<double>(stage.total()));
    room = std::min(room, static_cast<double>(stage.capacity) / static_cast<double>(stage.total()));
  }
  return {.peak_bytes = peak,
          .told_bytes = told_bytes(run.job, prepared.value().memory(), peak),
          .fits = !prepared.value().too_big(),
          .certainty = simulator::certainty_of(run.job, run.cluster, {.peak_bytes = peak, .room = room})};
}

Outcome predict(const PublishedRun& run) {
  if (run.unsupported) return {.unsupported = run.unsupported};
  if (!run.ran) return predict_memory(run);
  const auto predicted = simulator::predict(run.job, run.cluster, {.fits = false});
  if (!predicted) return {.unsupported = predicted.error().message};
  const auto& [simulation, prepared] = predicted.value();
  return {.iteration_s = simulation.iteration_s,
          .peak_bytes = static_cast<double>(simulation.peak_memory_bytes),
          .told_bytes = told_bytes(run.job, prepared.memory(), static_cast<double>(simulation.peak_memory_bytes)),
          .fits = !prepared.too_big(),
          .certainty = simulation.certainty};
}

/// A job for every configuration, on all cores. Equal ones differ in nothing that is simulated.
class Predictions {
 public:
  explicit Predictions(const std::vector<PublishedRun>& runs) {
    std::map<std::string, std::size_t> known;
    for (const PublishedRun& run : runs) {
      const std::string key = fmt::format("{} | {} | {}", run.sweep, run.plan, run.ran);
      const auto [at, fresh] = known.try_emplace(key, asked_.size());
      if (fresh) asked_.push_back(&run);
      of_run_.push_back(at->second);
    }
    outcomes_.resize(asked_.size());
    failures_.resize(asked_.size());
    {
      std::vector<std::jthread> helpers;
      for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) helpers.emplace_back([this] { work(); });
      work();
    }
    for (const std::exception_ptr& failure : failures_) {
      if (failure) std::rethrow_exception(failure);
    }
  }

  const Outcome& of(std::size_t run) const { return outcomes_[of_run_[run]]; }

 private:
  void work() {
    for (std::size_t i = next_++; i < asked_.size(); i = next_++) {
      try {
        outcomes_[i] = predict(*asked_[i]);
      } catch (...) {
        failures_[i] = std::current_exception();
      }
    }
  }

  std::vector<const PublishedRun*> asked_;
  std::vector<std::size_t> of_run_;
  std::vector<Outcome> outcomes_;
  std::vector<std::exception_ptr> failures_;
  std::atomic<std::size_t> next_ = 0;
};

ValidationRow row_of(const PublishedRun& run, const Outcome& outcome) {
  ValidationRow row;
  row.case_name = run.case_name;
  row.source = run.source;
  row.hardware = run.hardware;
  row.tier = run.tier;
  row.measured_iteration_s = run.iteration_s;
  row.measured_peak_bytes = run.peak_bytes;
  row.software = run.software;
  row.precision = run.precision;
  row.ran = run.ran;
  row.predicted_fits = outcome.fits;
  row.unsupported = outcome.unsupported;
  if (row.unsupported) return row;
  if (outcome.peak_bytes > 0) {
    row.predicted_peak_bytes = outcome.told_bytes - (run.allocated ? beside_allocator(run.cluster) : 0);
  }
  if (outcome.certainty && row.predicted_peak_bytes) {
    const double share = *row.predicted_peak_bytes / outcome.peak_bytes;
    row.peak_interval_bytes = {outcome.certainty->peak_bytes.low * share, outcome.certainty->peak_bytes.high * share};
    row.fit_probability = outcome.certainty->fit_probability;
  }
  if (!row.ran) return row;
  if (outcome.certainty) {
    row.interval_s = outcome.certainty->iteration_s;
    row.made_of = outcome.certainty->made_of;
  }
  row.predicted_iteration_s = outcome.iteration_s;
  row.error = outcome.iteration_s / run.iteration_s - 1;
  return row;
}

/// Rows of one source or machine: what they say of times, and of what fits.
struct Members {
  std::vector<Pair> times;
  int told = 0, told_rightly = 0, within = 0;
  bool all_ran = true;

  void add(const ValidationRow& row) {
    if (row.unsupported) return;
    if (row.ran && row.tier != "C") {
      times.push_back({row.measured_iteration_s, row.predicted_iteration_s});
      const auto& interval = row.interval_s;
      if (interval && row.measured_iteration_s >= interval->low && row.measured_iteration_s <= interval->high) ++within;
    }
    all_ran &= row.ran;
    if (!row.predicted_fits) return;
    ++told;
    if (*row.predicted_fits == row.ran) ++told_rightly;
  }
};

std::vector<ValidationGroup> groups_of(const std::vector<ValidationRow>& rows) {
  std::map<std::pair<std::string, std::string>, Members> members;
  for (const ValidationRow& row : rows) {
    if (row.unsupported) continue;
    members[{"source", row.source}].add(row);
    members[{"hardware", row.hardware}].add(row);
  }
  std::vector<ValidationGroup> groups;
  for (const auto& [key, of] : members) {
    if (of.times.empty() && of.all_ran) continue;
    groups.push_back(group_of(key.first, key.second, of.times));
    groups.back().told = of.told;
    groups.back().told_rightly = of.told_rightly;
    groups.back().within = of.within;
  }
  return groups;
}

}  // namespace

std::optional<double> predicted_iteration_s(const PublishedRun& run) {
  if (!run.timed()) return std::nullopt;
  const Outcome outcome = predict(run);
  return outcome.unsupported ? std::nullopt : std::optional(outcome.iteration_s);
}

Validation validate_published(const std::filesystem::path& csv) { return validate_published(read_published_runs(csv)); }

Validation validate_published(const std::vector<PublishedRun>& runs) {
  Validation result;
  std::vector<SweepCase> cases;
  const Predictions predictions(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const PublishedRun& run = runs[i];
    result.rows.push_back(row_of(run, predictions.of(i)));
    const ValidationRow& row = result.rows.back();
    if (row.unsupported || !row.ran || row.tier == "C") continue;
    const double samples = static_cast<double>(run.job.training.global_batch) / run.job.plan.ranks();
    cases.push_back({run.sweep, run.plan, row.measured_iteration_s, row.predicted_iteration_s, samples,
                     mfu_of(run, run.iteration_s), row.fit_probability.value_or(1)});
  }
  result.groups = groups_of(result.rows);
  result.sweeps = find_sweeps(cases);
  return result;
}

}  // namespace trivium::calibration
