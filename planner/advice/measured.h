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

/// A plan next to a published run of the same model.
struct SameModelRun {
  hardware::MeasuredRun run;
  bool same_job = false;  ///< as many devices, the same sequence and batch
  double faster = 0;      ///< tokens a second and device of the plan over those of the run, less 1
};

/// The run that same_model_text() is about.
std::optional<SameModelRun> same_model_run(const program::Job& job, const hardware::Cluster& cluster,
                                           const simulator::Simulation& simulation,
                                           const std::vector<hardware::MeasuredRun>& runs);

/// The best published run of the same model in as many bits, and how much more the plan promises: a sentence or two. A
/// run on the same device comes first, else one on another edition of its chip; of those, one of the same job. Empty
/// where nobody published one.
std::string same_model_text(const program::Job& job, const hardware::Cluster& cluster,
                            const simulator::Simulation& simulation, const std::vector<hardware::MeasuredRun>& runs);

}  // namespace trivium::planner
