// What was measured on one machine, whoever measured it: what its profile is fitted to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/measurements/kernel_trace.h"
#include "calibration/measurements/nccl_tests.h"
#include "calibration/measurements/topology.h"
#include "program/plan/job.h"
#include "program/record/run_record.h"

namespace trivium::calibration {

/// Whole iterations of somebody's trainer.
struct MeasuredJob {
  program::Job job;
  double iteration_s = 0;
  std::optional<double> peak_bytes;  ///< of the fullest rank
  std::string from;                  ///< file and trainer
};

/// A profiler's trace, with the plan that was run where the user gives it.
struct TracedJob {
  imports::KernelTrace trace;
  std::optional<program::Job> job;
};

/// Everything that one profile is fitted to. Any part may be empty.
struct Measurements {
  std::vector<program::RunRecord> records;
  std::vector<imports::GpuTopology> topologies;
  std::vector<imports::CollectiveTimes> collectives;
  std::vector<TracedJob> traces;
  std::vector<MeasuredJob> jobs;
  bool empty() const {
    return records.empty() && topologies.empty() && collectives.empty() && traces.empty() && jobs.empty();
  }
};

}  // namespace trivium::calibration
