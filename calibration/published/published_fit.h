// Hardware profiles fitted to published runs: a handful of constants a machine, and what all machines share.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "calibration/measurements/published_row.h"
#include "calibration/published/micro_rows.h"
#include "calibration/published/robust_fit.h"
#include "calibration/validate/validate.h"

namespace trivium::calibration {

/// A constant of profiles that runs are fitted by.
struct FitConstant {
  FitPrior prior;
  std::string profile;  ///< the one it belongs to; empty: of all devices of the family
  std::string family;   ///< where `profile` is empty: how the names of those devices begin; empty: all
  std::string pointer;  ///< JSON pointer in the profile, or in the device file where `profile` is empty
  std::string unit;     ///< appended to the number in the profile ("us"), empty for factors
  std::function<void(hardware::Node&, double)> set;
  bool written = true;  ///< false: the scale of a benchmark of seconds, which is not the machine's in training
};

/// What is fitted for these machines: compute scale, host time per kernel, lateness of collectives and efficiency of
/// the network of each, the memory efficiency of every device, and Physics once; for machines where only kernels
/// were measured (`micro`) the compute scale, and with them the efficiencies of products of every device family. Priors
/// are the same whatever the profiles say today, so that a fit does not depend on the last one.
std::vector<FitConstant> fit_constants(const std::vector<hardware::Node>& nodes,
                                       const std::vector<hardware::Node>& micro = {});

/// One source's errors: with every run in the fit, and with this source left out.
struct SourceErrors {
  ValidationGroup fitted, left_out;
};

/// A row and its error, predicted over measured - 1.
struct Residual {
  std::string name, source;
  double error = 0;
};

struct PublishedFit {
  std::vector<FitConstant> constants;
  RobustFit fit;
  std::vector<SourceErrors> sources;     ///< of the runs
  std::vector<ValidationGroup> micro;    ///< of the micro-measurements
  std::vector<Residual> residuals;       ///< of every run, largest first
  std::vector<std::string> unsupported;  ///< "case: reason"
  int rows = 0;                          ///< runs fitted to: tiers A and B
  bool interrupted = false;              ///< stopped early; values are the best so far
};

struct PublishedFitOptions {
  bool leave_one_out = true;
  std::function<bool()> stop = [] { return false; };
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

/// Fits to all runs of tiers A and B and to the micro-measurements. A source of n rows has the weight of 2 sqrt(n),
/// lest the largest rule. Errors: Failure(kInput) where no run can be replayed.
PublishedFit fit_published(const std::vector<PublishedRun>& runs, const PublishedFitOptions& options,
                           const std::vector<MicroRow>& micro = {});

/// For people: errors of every source, constants with what is known of them, what stays undetermined.
std::string to_table(const PublishedFit& fit);

}  // namespace trivium::calibration
