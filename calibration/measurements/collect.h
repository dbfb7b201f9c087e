// Files of measurements, sorted by what they say of whom.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/measurements/measurements.h"
#include "hardware_profiles/hardware.h"
#include "program/plan/plan_file.h"

namespace trivium::calibration {

struct Collected {
  Measurements measurements;
  std::optional<hardware::Node> profile;     ///< the last profile among the files
  std::vector<program::PlanFile> plans;      ///< all plans among the files
  std::optional<hardware::Cluster> cluster;  ///< of the first record or plan that names one
  std::string cluster_of;                    ///< the file that names it
  std::vector<std::string> record_files;     ///< those of the run records, in their order
};

/// Reads files of any kind that an importer recognises. A plan says what the logs and traces that follow it ran, until
/// the next plan. Rows of tables of published runs count where their hardware is that of the first record, plan or row,
/// except those of tier C. Errors: Failure(kInput) naming the file; Failure(kUsage) for a log without a plan before it.
Collected collect_measurements(const std::vector<std::string>& files);

}  // namespace trivium::calibration
