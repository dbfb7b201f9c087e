// Published runs replayed, as errors to learn from.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "calibration/certainty/learn_time.h"
#include "calibration/certainty/scales.h"

namespace trivium::calibration {

struct RunErrors {
  std::vector<TimeRun> time;
  std::vector<RunError> memory;
};

/// Log(predicted / measured) of a source as a whole, with it in the fit of the profiles and left out.
struct SourceShift {
  double fitted = 0, left_out = 0;
};

/// A table with the columns source, fitted_bias, left_out_bias: predicted / measured - 1 as `trivium calibrate --runs`
/// prints them. Errors: Failure(kInput) as `FILE:LINE: column: …`.
std::map<std::string, SourceShift> read_left_out(const std::filesystem::path& csv);

/// Rows of tiers A and B that could be replayed, of every table, by what their predictions are made of: who asks the
/// model has not measured. Memory: not of adapters, whose recipes tables do not print. Errors with the source left out:
/// `shifts` by source, `machines` by publisher and machine; of others as fitted. Errors: as read_published_runs().
RunErrors run_errors(const std::vector<std::filesystem::path>& tables, const std::map<std::string, SourceShift>& shifts,
                     const std::vector<MachineRuns>& machines);

/// Runs of ours: a table with the columns source, device, stack, kind, machine, measured_s, predicted_s,
/// measured_bytes, predicted_bytes (the last two may be empty). Errors: Failure(kInput) as `FILE:LINE: column: …`.
RunErrors own_run_errors(const std::filesystem::path& csv);

}  // namespace trivium::calibration
