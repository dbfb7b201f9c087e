// How sure a prediction is: intervals and the probability that a plan fits, from runs that were measured.
#pragma once

#include <string>
#include <vector>

#include "hardware_profiles/hardware.h"
#include "program/ir/program.h"
#include "simulator/certainty/measured_errors.h"

namespace trivium::simulator {

/// What was predicted of a job.
struct Predicted {
  double iteration_s = 0;
  double mfu = 0;
  double peak_bytes = 0;           ///< of the fullest device
  double room = 1;                 ///< what the fullest device may fill over what it does
  double exposed = 0, bubble = 0;  ///< shares of the iteration: Composition
};

/// Within which 90 of 100 measurements are expected.
struct PredictionInterval {
  double low = 0, high = 0;
};

/// Of seconds, in the unit of the prediction that they are around: "28.9 s to 35.4 s".
std::string interval_text(const PredictionInterval& seconds, double prediction_s);

struct Certainty {
  double expected_s = 0;  ///< of the iteration: half of the measurements are expected below
  PredictionInterval iteration_s;
  PredictionInterval peak_bytes;  ///< of the fullest device
  double fit_probability = 1;     ///< that no device runs out of memory
  bool compared = false;          ///< runs of this device family, stack and kind of plan were measured
  int runs = 0;                   ///< how many
  std::vector<std::string> sources;
  std::string words;         ///< where it comes from: "as 66 measured runs of stack fsdp on a100 …"
  double between_plans = 0;  ///< standard deviation of log(measured / predicted) that two plans here do not share
  Composition made_of;       ///< what the prediction is made of
};

/// That a measured iteration takes no longer than that: halves of Student's distribution with four degrees of freedom
/// around the expected time, through both ends of the interval.
double within_probability(const Certainty& certainty, double iteration_s);

/// What is alike in runs of the job there, by what their times share. Of a heterogeneous cluster, the node with the
/// most devices.
RunLikeness run_likeness_of(const program::Job& job, const hardware::Cluster& cluster);

/// What is alike in runs of the job there. `mfu`: as predicted. Of a heterogeneous cluster, that with the most devices.
Likeness likeness_of(const program::Job& job, const hardware::Cluster& cluster, double mfu);

/// Memory on cores is exact: the runtime takes what the Program says, before the first step.
Certainty certainty_of(const program::Job& job, const hardware::Cluster& cluster, const Predicted& predicted,
                       const MeasuredErrors& errors = measured_errors());

/// The share of a device's memory that a plan may be predicted to fill, so that it fits with the probability asked for
/// (0 < probability < 1): 1 at most.
double usable_memory(const program::Job& job, const hardware::Cluster& cluster, double probability,
                     const MeasuredErrors& errors = measured_errors());

/// That the first plan is faster than the second on one cluster, where errors of device, stack and machine are shared.
double beats_probability(double first_s, double second_s, const Certainty& first);

}  // namespace trivium::simulator
