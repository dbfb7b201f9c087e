// The job that a command was given, prepared or predicted: refused in the words of the command line.
#pragma once

#include <stop_token>

#include "cli/options/options.h"
#include "simulator/predict/predict.h"

namespace trivium::cli {

/// Errors: Failure(kNoPlan) with the reason when the plan cannot be or, unless `ignore_memory`, does not fit; else as
/// simulator::prepare().
simulator::Prepared prepare(const JobRequest& request, bool ignore_memory, const std::stop_token& stop = {});

/// The job predicted, refused likewise. Errors: as prepare(); else as simulator::predict().
simulator::Prediction predict(const JobRequest& request, bool ignore_memory,
                              const simulator::SimulationOptions& how = {}, const std::stop_token& stop = {});

}  // namespace trivium::cli
