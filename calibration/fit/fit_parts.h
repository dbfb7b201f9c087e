// The parts of a calibration, one for every kind of measurement. Each changes `fit.node`, adds to `fit.numbers` and
// tells `fit.report` what it did and what it could not.
#pragma once

#include <span>

#include "calibration/fit/calibrate.h"

namespace trivium::calibration {

/// Writes one number's lineage into the profile and the report's list.
void note(Fit& fit, FittedNumber number);

/// Devices, adapters, topology, and the bandwidth of NVLink where the device's generation is known.
void fit_topology(Fit& fit, const imports::GpuTopology& topology);

/// `allreduce_bus` and `allreduce_latency` by group size inside a node, and the network's efficiency between nodes.
/// Small messages give latencies, large ones bandwidths: where only one end was measured the other is kept.
void fit_collectives(Fit& fit, std::span<const imports::CollectiveTime> times, const std::string& from);

/// `gemm_efficiency`, `memory_efficiency`, `host_link`, `kernel_issue`, and collectives as above.
void fit_kernels(Fit& fit, const TracedJob& traced);

/// `op_rates`, and of CPU nodes `intra` and `collective_skew`.
void fit_runs(Fit& fit, std::span<const program::RunRecord> records);

/// `compute_scale`, `kernel_issue`, `collective_skew` and the network's efficiency, together.
void fit_jobs(Fit& fit, std::span<const MeasuredJob> jobs);

}  // namespace trivium::calibration
