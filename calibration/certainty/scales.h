// What a machine's speed would be taken for, had a publisher's runs not been seen.
#pragma once

#include <string>
#include <vector>

#include "calibration/certainty/pooled_scale.h"
#include "calibration/measurements/published_row.h"
#include "calibration/published/micro_rows.h"

namespace trivium::calibration {

/// log(predicted / measured) of a run, with the profile as shipped and with the scale that others' runs say.
struct RunScaled {
  const PublishedRun* run = nullptr;
  double mfu = 0;  ///< as measured
  double shipped = 0, left_out = 0;
};

/// Runs of one publisher on one machine, whose profile has one constant of its own: the share of the device's rates
/// that it reaches (`compute_scale`).
struct MachineRuns {
  std::string publisher;  ///< the source less its version: "MLPerf Training" of "MLPerf Training v5.1 results"
  std::string machine;    ///< profile of its nodes
  std::string device;
  std::vector<RunScaled> runs;
  double scale = 0;      ///< shipped
  double best = 0;       ///< that suits these runs best: the middle of what each says, by the weight of products in it
  double deviation = 0;  ///< of log(best), as the runs tell it
  double products =
      1;  ///< rate of products measured by themselves on this machine over the device's curve; 1: none were
  double left_out =
      0;           ///< expected of the other publishers' best and of `products`; 0: nobody else measured the device
  int others = 0;  ///< publishers and machines with this device that `left_out` is based on

  bool known() const { return others > 0; }
};

/// A class of runs.
struct ScaleErrors {
  std::string of;
  int runs = 0;
  double mean = 0, bias = 0;            ///< of |predicted / measured - 1| and of predicted / measured - 1, as shipped
  double left_mean = 0, left_bias = 0;  ///< the same with the scale `left_out`
};

/// Runs of tiers A and B whose devices are busy (predicted MFU of 10 % and more); by machine and publisher. Everything
/// else of the profiles stays as it is. `micro`: products measured by themselves. The result points into `runs`. All
/// cores.
std::vector<MachineRuns> leave_out_scales(const std::vector<PublishedRun>& runs, const std::vector<MicroRow>& micro);

/// Means over the runs of a machine and publisher; `left_*` only where it is known().
ScaleErrors errors_of(const MachineRuns& machine);

/// By what is aimed at for whom: dense models in 16 bits and in fewer on Hopper, mixtures, B200 and GB200; each
/// publisher alone and all of them. Runs of a measured MFU of 10 % and more, of machines with a known left-out scale.
std::vector<ScaleErrors> errors_by_class(const std::vector<MachineRuns>& machines);

/// The source without its version.
std::string publisher_of(const std::string& source);

/// For people.
std::string to_table(const std::vector<MachineRuns>& machines);
std::string to_table(const std::vector<ScaleErrors>& classes);

}  // namespace trivium::calibration
