// How predictions of one machine fared over many runs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "hardware_profiles/hardware.h"
#include "program/record/run_record.h"

namespace trivium::calibration {

struct DatedRun {
  std::string file;
  program::RunRecord record;
  hardware::Cluster cluster;  ///< that predicts it
};

struct HistoryEntry {
  std::string file;
  std::string date;  ///< empty for records that do not say
  std::string plan;
  double measured_s = 0, predicted_s = 0, error = 0;
  std::optional<std::string> unsupported;
  std::vector<std::string> changes;  ///< of what ran it since the runs before: "library: Eigen 3.4.0 -> Eigen 3.5.0"
};

struct History {
  std::vector<HistoryEntry> entries;  ///< by date, then by file
  /// Error of the last run less the median error of those before, since the last change of machine, driver or library
  /// where two runs or more were made since; none with fewer runs.
  std::optional<double> drift;
};

/// Replays every run. Records of one folder may be of different plans: errors are shares of each one's own time.
History history_of(std::vector<DatedRun> runs);

/// Schema `trivium.history/1`.
nlohmann::json to_json(const History& history);
std::string to_table(const History& history);

}  // namespace trivium::calibration
