// A plan against the log of the trainer that ran it.
#include <fmt/format.h>

#include "base/error.h"
#include "calibration/measurements/training_log.h"
#include "calibration/validate/groups.h"
#include "calibration/validate/peaks.h"
#include "calibration/validate/validate.h"
#include "simulator/predict/predict.h"

namespace trivium::calibration {
namespace {

constexpr std::size_t kWarmUp = 5;  // as typical_iteration_s leaves out

std::vector<ValidationGroup> logged_steps(const imports::TrainingLog& log, double predicted) {
  std::vector<ValidationGroup> groups;
  for (std::size_t step = std::min(kWarmUp, log.iteration_s.size() / 2); step < log.iteration_s.size(); ++step) {
    const Pair pair{log.iteration_s[step], predicted};
    groups.push_back(group_of("step", std::to_string(step), std::span(&pair, 1)));
  }
  return groups;
}

}  // namespace

Validation validate_log(const program::PlanFile& plan, const imports::TrainingLog& log,
                        const hardware::Cluster& cluster, const std::stop_token& stop) {
  if (log.global_batch && *log.global_batch != plan.job.training.global_batch) {
    throw base::Failure(base::ErrorKind::kInput,
                        fmt::format("{}: iterations of {} samples; the plan's global_batch is {}", log.file,
                                    *log.global_batch, plan.job.training.global_batch));
  }
  Validation result;
  ValidationRow row;
  row.case_name = fmt::format("{}, {}", plan.job.model.name, program::summary(plan.job.plan));
  row.source = fmt::format("log of {}", log.trainer);
  row.hardware = cluster.name;
  row.tier = log.perturbed ? "B" : "A";
  row.measured_iteration_s = log.typical_iteration_s();
  row.measured_peak_bytes = log.peak_bytes;
  const auto predicted = simulator::predict(plan.job, cluster, {.fits = false}, stop);
  if (predicted) {
    const simulator::Simulation& simulation = predicted.value().simulation;
    row.predicted_iteration_s = simulation.iteration_s;
    row.predicted_peak_bytes = static_cast<double>(simulation.peak_memory_bytes) - beside_allocator(cluster);
    row.interval_s = simulation.certainty.iteration_s;
    row.error = row.predicted_iteration_s / row.measured_iteration_s - 1;
    result.groups = logged_steps(log, simulation.iteration_s);
  } else {
    row.unsupported = predicted.error().message;
  }
  result.rows.push_back(std::move(row));
  return result;
}

}  // namespace trivium::calibration
