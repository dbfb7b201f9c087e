#include "planner/search/ranking.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "planner/search/families.h"
#include "planner/space/space.h"
#include "program/plan/job_json.h"

namespace trivium::planner {
namespace {

std::size_t wanted(const SearchRequest& request) { return static_cast<std::size_t>(std::max(1, request.best)); }

// All of it was refused: its bound says nothing, and need not.
bool none_left(const SearchResult& result) { return result.proved && result.bound_s == 0; }

}  // namespace

bool faster(const Candidate& a, const Candidate& b) {
  if (a.simulation.iteration_ps != b.simulation.iteration_ps) {
    return a.simulation.iteration_ps < b.simulation.iteration_ps;
  }
  if (overlaps(a.plan) != overlaps(b.plan)) return overlaps(a.plan) > overlaps(b.plan);
  return program::summary(a.plan) < program::summary(b.plan);
}

void keep_best(std::vector<Candidate>& candidates, const SearchRequest& request) {
  std::sort(candidates.begin(), candidates.end(), faster);
  std::set<std::string> seen;
  std::erase_if(candidates, [&](const Candidate& candidate) {
    const std::string name = request.distinct ? family_of(candidate.plan) : program::to_json(candidate.plan).dump();
    return !seen.insert(name).second;
  });
  if (candidates.size() > wanted(request)) candidates.resize(wanted(request));
}

std::int64_t limit_behind(const std::vector<Candidate>& best, const SearchRequest& request) {
  if (best.size() < wanted(request)) return request.limit_ps;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < wanted(request); ++i) last = std::max(last, best[i].simulation.iteration_ps);
  const std::int64_t gap = std::llround(static_cast<double>(last) * request.gap);
  return std::min(request.limit_ps, last - gap);
}

void join(SearchResult& all, const SearchResult& part, const SearchRequest& request) {
  all.best.insert(all.best.end(), part.best.begin(), part.best.end());
  keep_best(all.best, request);
  all.plans_in_space += part.plans_in_space;
  all.plans_forbidden += part.plans_forbidden;
  all.plans_infeasible += part.plans_infeasible;
  all.plans_bounded += part.plans_bounded;
  all.plans_simulated += part.plans_simulated;
  all.nodes_opened += part.nodes_opened;
  if (none_left(all)) {
    all.bound_s = part.bound_s;
  } else if (!none_left(part)) {
    all.bound_s = std::min(all.bound_s, part.bound_s);
  }
  all.proved = all.proved && part.proved;
  if (part.best_s > 0) all.best_s = all.best_s > 0 ? std::min(all.best_s, part.best_s) : part.best_s;
}

}  // namespace trivium::planner
