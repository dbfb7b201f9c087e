// What `trivium plan` prints with its answer: baselines, and what was measured.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "planner/advice/baselines.h"
#include "planner/advice/nearest_batch.h"
#include "planner/search/search.h"

namespace trivium::cli {

/// The best plan compared with baselines and with the best MFU measured on its devices. Adds `baselines` and `promise`
/// to `json`. Empty where there is no plan.
std::string beside(const planner::SearchRequest& request, const planner::SearchResult& result,
                   const std::vector<planner::Baseline>& naive, nlohmann::json& json);

/// A batch that would use all devices better, as a sentence; empty where there is none. Adds `nearest_batch` to `json`.
std::string other_batch(const planner::SearchRequest& request, const planner::SearchResult& result,
                        const planner::Effort& effort, nlohmann::json& json);

}  // namespace trivium::cli
