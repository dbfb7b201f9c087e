// What a machine's speed would be taken for, had a publisher's runs on it not been seen.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "calibration/measurements/published_row.h"

namespace trivium::calibration {

/// Runs of one publisher on one machine, whose profile has one constant of its own: the share of the device's rates
/// that it reaches (`compute_scale`).
struct MachineRuns {
  std::string publisher;  ///< the source less its version: "MLPerf Training" of "MLPerf Training v5.1 results"
  std::string machine;    ///< profile of its nodes
  std::string device;
  int runs = 0;
  double scale = 0;  ///< shipped
  double best = 0;   ///< at which the median of these runs' errors is zero
  double left_out =
      0;  ///< what others' best say of five runs and more: on this machine, else of this device; 0: there are none
  int others = 0;        ///< publishers and machines that `left_out` is based on
  double mean = 0;       ///< of |predicted / measured - 1|, as shipped
  double bias = 0;       ///< of predicted / measured - 1, as shipped
  double left_mean = 0;  ///< the same with the scale `left_out`
  double left_bias = 0;
};

/// Runs of tiers A and B whose devices are busy (predicted MFU of 10 % and more); by machine and publisher. Everything
/// else of the profiles stays as it is. All cores.
std::vector<MachineRuns> leave_out_scales(const std::vector<PublishedRun>& runs);

/// The source without its version.
std::string publisher_of(const std::string& source);

/// For people.
std::string to_table(const std::vector<MachineRuns>& machines);

}  // namespace trivium::calibration
