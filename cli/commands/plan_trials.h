// Plans worth measuring, as files (`trivium plan --trials`).
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/options/options.h"
#include "planner/search/result.h"

namespace trivium::cli {

struct TrialOptions {
  int count = 0;
  std::string folder = "trials";
};

/// `options` must outlive the parse.
void add_trial_options(CLI::App& command, TrialOptions& options);

/// Makes the folder. Errors: Failure(kUsage) where it cannot, or is there and not an empty folder.
void check_trial_options(const TrialOptions& options);

/// Writes `FOLDER/trial-N.json`, a plan file each, the likeliest to be the fastest first; what it wrote into `json`
/// (member `trials`), and a text for people. Nothing where none was asked for or no plan was found.
std::string write_trials(const TrialOptions& options, const JobRequest& request, const planner::SearchResult& result,
                         nlohmann::json& json);

}  // namespace trivium::cli
