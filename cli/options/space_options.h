// Options that bound the search space: --fix, --forbid, --allow, --min, --max.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/options/options.h"
#include "planner/search/search.h"

namespace trivium::cli {

struct SpaceOptions {
  double fit_probability = planner::kFitProbability;
  std::vector<std::string> fix, forbid, allow, min, max;
  std::string trainer;  ///< whose plans alone are searched; empty: those of our own runtime
};

/// The bounds alone: all but --for. `options` must outlive the parse.
void add_bound_options(CLI::App& command, SpaceOptions& options);

/// Bounds and --for. `options` must outlive the parse.
void add_space_options(CLI::App& command, SpaceOptions& options);

/// The search that the options mean; fields that --fix gives go into `request` too, as if given by their own options.
/// Errors: Failure(kUsage) for wrong fields and values, and for bounds that contradict what is fixed.
planner::SearchRequest search_request(const SpaceOptions& options, JobRequest& request);

}  // namespace trivium::cli
