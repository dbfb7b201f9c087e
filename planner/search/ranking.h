// The order in which searches answer, what is left to look for, and several of them as one.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/result.h"
#include "planner/space/request.h"

namespace trivium::planner {

/// Ties are broken by what people read, so that the answer does not depend on the order of the space.
bool faster(const Candidate& a, const Candidate& b);

/// What the request asks for of all of them: the fastest first, every plan once, with `distinct` every family once, and
/// no more than `best`.
void keep_best(std::vector<Candidate>& candidates, const SearchRequest& request);

/// What a plan may take (ps) that could still be among those, given what keep_best() left, or that is
/// faster by more than the request's gap. The request's own limit at most.
std::int64_t limit_behind(const std::vector<Candidate>& best, const SearchRequest& request);

/// Adds to what is known of some plans what the search of others found: the best of both, their counts, the lower
/// bound. What the others were, and why plans fell out, is left as it is.
void join(SearchResult& all, const SearchResult& part, const SearchRequest& request);

}  // namespace trivium::planner
