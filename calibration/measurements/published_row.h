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
  std::string case_name, source, hardware, software, precision, tier;
  program::Job job;           ///< of a row that is replayed
  hardware::Cluster cluster;  ///< likewise
  bool ran = true;            ///< false: tried, and no figure came of it (mostly: out of memory)
  double iteration_s = 0;     ///< 0 where it did not run
  std::optional<double> peak_bytes;
  bool allocated = false;  ///< `peak_bytes` is what PyTorch's allocator gave out, as newer tables print it
  std::optional<std::string> unsupported;  ///< why it cannot be replayed
  std::string sweep;             ///< equal for runs of one source, machine, stack, model, GPU count and global batch
  std::string plan;              ///< equal for runs of a sweep that were run the same way
  std::string version;           ///< of the software, as the table prints it
  std::string graphs, dispatch;  ///< what the row says of CUDA graphs and of the dispatcher to experts

  /// Whether a prediction of its time can be compared.
  bool timed() const { return ran && !unsupported; }
};

/// Columns every table has (validation/README.md); a table may have more, as `published_model.h` and this reader know.
std::span<const std::string> published_columns();

/// What the columns leave open follows the software's stack: overlap of gradient reduction and of tensor collectives,
/// gathers ahead under ZeRO-1 and 3, gradients reduced in the training precision or in fp32, dropout. A row that names
/// hardware or software nobody knows, leaves its split or shape open, or needs what a Plan cannot say is `unsupported`
/// with the reason. Errors: Failure(kInput) as `FILE:LINE: column: …` for what is malformed.
PublishedRun read_published_run(const CsvTable::Row& row);

}  // namespace trivium::calibration
