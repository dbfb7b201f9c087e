// What `trivium plan` answers in addition to the fastest plan: fronts, deadlines, batches, other hardware, other costs.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/options/options.h"
#include "planner/advice/studies.h"

namespace trivium::cli {

struct StudyOptions {
  std::string deadline, batch_range, sequence_range, critical_batch, jitter;
  bool pareto = false, sensitivity = false, robustness = false;
};

/// `options` must outlive the parse.
void add_study_options(CLI::App& command, StudyOptions& options);

/// Errors: Failure(kUsage), also when an option needs another that is missing.
void check_study_options(const StudyOptions& options, const JobRequest& request);

/// Adds member `whole_training`, where the job says its tokens.
void add_whole_training(const planner::SearchRequest& request, const planner::Candidate& best, nlohmann::json& json);

/// Answers of the studies that were asked for: JSON members into `json`, and a text for people.
std::string study(const StudyOptions& options, const planner::SearchRequest& request,
                  const planner::SearchResult& result, const planner::Effort& effort, nlohmann::json& json);

}  // namespace trivium::cli
