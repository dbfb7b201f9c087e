// The one way from a job to the time that it takes: what is searched, simulated, validated and calibrated.
#pragma once

#include <cstdint>
#include <stop_token>

#include "base/error.h"
#include "simulator/predict/prepare.h"
#include "simulator/predict/simulate.h"

namespace trivium::simulator {

struct PredictOptions {
  bool fits = true;      ///< refuse what does not fit the devices or their hosts
  bool verified = true;  ///< false: for the plans that a search looks at; its answers are verified
  SimulationOptions simulation{};
};

struct Prediction {
  Simulation simulation;
  /// What was simulated: the job, or where micro-batches were counted the job with fewer of them. Its roles, memory and
  /// mesh are those of the job; with a timeline, every rank or a disturbance it is the job itself.
  Prepared prepared;
};

/// The figures of one job on one cluster. Micro-batches that repeat others are counted where that gives the same to the
/// picosecond (simulate_in_rounds()), else all are simulated; links are shared, a crowded allocator takes its time, and
/// the interval comes from measured runs. The cluster must outlive the result. Errors: as prepare() and simulate().
base::Result<Prediction> predict(const program::Job& job, const hardware::Cluster& cluster,
                                 const PredictOptions& options = {}, const std::stop_token& stop = {});

/// The iteration that predict() finds (ps), and nothing else of it: several times as quick. Never verified. Errors: as
/// predict().
base::Result<std::int64_t> predict_iteration_ps(const program::Job& job, const hardware::Cluster& cluster,
                                                const PredictOptions& options = {}, const std::stop_token& stop = {});

/// Why the job does not fit, without a simulation; nothing where it does. Errors: as prepare(), but for memory.
base::Result<std::optional<program::Infeasible>> predict_overflow(const program::Job& job,
                                                                  const hardware::Cluster& cluster);

}  // namespace trivium::simulator
