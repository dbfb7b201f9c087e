// The files of a foreign run: traces of its ranks, logs of its iterations.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calibration/measurements/kernel_trace.h"
#include "calibration/measurements/training_log.h"

namespace trivium::calibration::foreign {

struct ForeignRun {
  std::vector<imports::KernelTrace> traces;  ///< by rank where all tell theirs, else as given
  std::vector<imports::TrainingLog> logs;
};

/// Kineto traces, of cores too, exports of Nsight Systems (every process is a rank) and training logs, packed by gzip
/// or not. Errors: Failure(kInput) naming the file that is none of them, is damaged, or tells a rank twice; where there
/// is no trace.
ForeignRun read_foreign(const std::vector<std::string>& files);

/// Fields of the plan and training that the traces tell, by name of program::set_field: ranks from process groups,
/// batch and sequence from the embedding's input, ZeRO stage, experts and sequence parallelism from what ranks
/// exchange. A single process that communicates with none is a job of one rank. Errors: Failure(kInput) where they do
/// not tell the number of ranks.
std::map<std::string, std::string> told_fields(const ForeignRun& run);

}  // namespace trivium::calibration::foreign
