// Learning a machine from what it did: op rates and links fitted to the timelines of real runs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hardware_profiles/hardware.h"
#include "program/run_record.h"

namespace trivium::calibration {

/// A fitted node and what the fit did, one line a constant or op kind.
struct Fit {
  hardware::Node node;
  std::vector<std::string> report;
};

/// Fits `device.op_rates` (and `intra`, where the records communicate) of a copy of `base` to the events of the
/// records. Per shape the median over steps and ranks counts, so that outliers do not; what the shapes do not tell
/// apart stays in the proportions of `base`. `sources` of the result says which record made which number. Errors:
/// Failure(kInput) when there are no records, one has no events, or one's events name no op of its plan.
Fit calibrate(const hardware::Node& base, std::span<const program::RunRecord> records);

}  // namespace trivium::calibration
