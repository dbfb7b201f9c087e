// Options of `simulate` for what failures leave of a training.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/options/options.h"
#include "simulator/predict/simulate.h"
#include "simulator/studies/goodput.h"

namespace trivium::cli {

struct FailureOptions {
  bool asked = false;
  std::string mtbf, checkpoint, restart, interval;
};

void add_failure_options(CLI::App& command, FailureOptions& options);

/// Whether any of the options was given.
bool wants_failures(const FailureOptions& options);

/// What failures make of the job; `training_s` 0: the job does not say how many tokens.
struct FailureOutlook {
  simulator::Failures failures;
  base::Seconds interval, best, young, daly;
  double goodput = 0;
  double simulated_goodput = 0;  ///< over a thousand failures drawn one by one
  double training_s = 0;         ///< calendar time of the whole training
};

/// Errors: Failure(kUsage) for text that is no time, or zero where that makes no sense.
FailureOutlook outlook(const FailureOptions& options, const JobRequest& request,
                       const simulator::Simulation& simulation);

/// The object `failures` of a `trivium.simulation/1`.
nlohmann::json failures_json(const FailureOutlook& outlook);
std::string failures_report(const FailureOutlook& outlook);

}  // namespace trivium::cli
