// Whether anyone has measured what a plan promises.
#pragma once

#include <optional>
#include <string>

#include "hardware_profiles/measured_mfu.h"
#include "simulator/predict/simulate.h"

namespace trivium::planner {

/// A plan's MFU compared with the best that was measured on its devices.
struct Plausibility {
  double measured = 0;  ///< best measured MFU; of different devices the mean, weighted by peak
  bool above = false;   ///< the plan promises more
  std::string words;    ///< a sentence or two
};

/// Nothing for devices for which the table has no run with the plan's kind of attention, of models of its kind (dense
/// or a mixture) and products in as many bits. A promise above the measured says by how much, what the plan does that
/// the measured run did not, and how far off the simulator is on that run. `simulation`: of the job on the cluster.
std::optional<Plausibility> plausibility_of(const program::Job& job, const hardware::Cluster& cluster,
                                            const simulator::Simulation& simulation,
                                            const std::vector<hardware::MeasuredMfu>& measured);

/// The best published run of the same model in as many bits, and how much more the plan promises: a sentence or two. A
/// run on the same device comes first, else one on another edition of its chip; of those, one of the same job. Empty
/// where nobody published one.
std::string same_model_text(const program::Job& job, const hardware::Cluster& cluster,
                            const simulator::Simulation& simulation, const std::vector<hardware::MeasuredRun>& runs);

}  // namespace trivium::planner
