// Search over one space: branch and bound with the event simulator as judge.
#pragma once

#include <optional>
#include <stop_token>

#include "planner/search/result.h"
#include "planner/space/request.h"

namespace trivium::planner {

/// search() over one space: all ranks of the request, on the nodes as they are.
SearchResult search_as_given(const SearchRequest& request, int threads, std::stop_token stop, const Progress& progress);

/// A plan of that space that fits, not simulated: of those with the lowest bounds the first that a search comes upon.
/// Nothing where none fits, or where `stop` came first. Errors: those of with_fields_settled().
std::optional<program::Plan> plan_that_fits(const SearchRequest& request, int threads, std::stop_token stop);

}  // namespace trivium::planner
