// What a search found, as JSON and as a report.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/options/options.h"
#include "planner/advice/relax.h"
#include "planner/search/search.h"

namespace trivium::cli {

/// A plan with its figures.
nlohmann::json candidate_json(const planner::Candidate& candidate);

/// Schema `trivium.plan-result/1`. `wanted`: what was searched.
nlohmann::json result_json(const JobRequest& request, const planner::SearchRequest& wanted,
                           const planner::SearchResult& result);

/// What the search found, with all figures: plans, other families, ways to use the nodes, rejected families, and what
/// was not searched.
std::string details_report(const planner::SearchRequest& wanted, const planner::SearchResult& result);

/// Nodes and devices that the plan leaves idle: a note for each kind.
std::vector<std::string> idle_notes(const JobRequest& request, const planner::SearchResult& result);

/// The search space field by field, with the values that its plans take; and split by split, with how many plans there
/// are of each: their sum is the space.
std::string space_report(const planner::SearchRequest& request, const planner::SearchResult& result);
nlohmann::json space_json(const planner::SearchRequest& request);

/// What to say when nothing fits: a reason that holds for all plans is said once, else the commonest one; and what
/// would help.
std::string nothing_fits(const planner::SearchRequest& wanted, const planner::SearchResult& result,
                         const std::vector<planner::Relaxation>& relaxations);

/// Members `relaxations` and `hint` of the result.
nlohmann::json relaxations_json(const std::vector<planner::Relaxation>& relaxations);

}  // namespace trivium::cli
