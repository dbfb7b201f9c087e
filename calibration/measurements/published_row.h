// One line of a table of published runs, as a job on a cluster.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "calibration/measurements/csv.h"
#include "hardware_profiles/hardware.h"
#include "program/ir/program.h"

namespace trivium::calibration {

struct PublishedRun {
  std::string case_name, source, hardware, tier;
  program::Job job;
  hardware::Cluster cluster;
  double iteration_s = 0;
  std::optional<double> peak_bytes;
  std::string sweep;  ///< equal for runs of one source, machine, stack, model, GPU count and global batch
  std::string plan;   ///< equal for runs of a sweep that were run the same way
};

/// Columns every table has (validation/README.md).
std::span<const std::string> published_columns();

/// What the columns leave open follows the software's stack: overlap of gradient reduction and of tensor collectives,
/// gathers ahead under ZeRO-3, gradients reduced in the training precision or in fp32. Stacks of the Megatron family
/// ran with dropout .1 at attention and residual (their default, and that of the papers); the others without. Errors:
/// Failure(kInput) as `FILE:LINE: column: …`.
PublishedRun read_published_run(const CsvTable::Row& row);

}  // namespace trivium::calibration
