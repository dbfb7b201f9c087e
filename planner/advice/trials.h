// Which plans to measure, so that the fastest is known and not only predicted.
#pragma once

#include <vector>

#include "planner/search/result.h"

namespace trivium::planner {

/// A plan worth measuring.
struct Trial {
  Candidate candidate;
  double fastest_probability = 0;  ///< that it is the fastest of all that the search shows, measured
};

/// Of the best plans and those of other families, the `count` that are the likeliest to be the fastest, likeliest
/// first. Errors of two plans on one machine are taken for independent beyond what they share
/// (Certainty::between_plans).
std::vector<Trial> trials(const SearchResult& result, int count);

}  // namespace trivium::planner
