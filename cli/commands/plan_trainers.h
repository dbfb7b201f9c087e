// The other trainers' best plans next to that of Trivium's own runtime.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "cli/options/options.h"
#include "cli/options/space_options.h"
#include "cli/render/plan_answer.h"
#include "planner/advice/studies.h"

namespace trivium::cli {

/// Whether a plan is priced for Trivium's own runtime only because neither --for nor a stack was given, on several
/// GPUs, where other trainers could run it.
bool compares_trainers(const SpaceOptions& options, const JobRequest& request);

/// Each trainer's best plan, or why it has none. Fills member `trainers` of the result. `request`: as resolved, before
/// search_request() changed it; `wanted`, `result`: the search for our own runtime, whose time is the budget of the
/// others, if it is long.
std::vector<TrainerAnswer> trainer_answers(const SpaceOptions& options, const JobRequest& request,
                                           const planner::SearchRequest& wanted, const planner::SearchResult& result,
                                           const planner::Effort& effort, nlohmann::json& json);

}  // namespace trivium::cli
