// What stands beside the answer of `trivium plan`: naive ways to split, and what was measured.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "planner/baselines.h"
#include "planner/search.h"

namespace trivium::cli {

/// The best plan beside naive ways and beside the best MFU that was measured on its devices. Adds `baselines` and
/// `promise` to `json`. Empty where there is no plan.
std::string beside(const planner::SearchRequest& request, const planner::SearchResult& result,
                   const std::vector<planner::Baseline>& naive, nlohmann::json& json);

}  // namespace trivium::cli
