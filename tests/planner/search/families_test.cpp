#include "planner/search/families.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "planner/bound/balance.h"
#include "planner/bound/evaluate.h"
#include "planner/search/one_space.h"
#include "planner/space/space.h"
#include "tests/planner/problems.h"

namespace trivium::planner {
namespace {

SearchResult search_families(const SearchRequest& request) { return search_as_given(request, 2, {}, {}); }

// The best plan is proved; with it come plans of other families, each once, none of them faster.
TEST(SearchFamilies, ShowsOtherFamiliesBesideTheBest) {
  SearchRequest request = small_problem();
  request.best = 1;
  request.others = 4;
  const SearchResult result = search_families(request);
  EXPECT_TRUE(result.proved);
  ASSERT_EQ(result.best.size(), 1U);
  ASSERT_EQ(result.others.size(), 4U);
  std::set<std::string> families{family_of(result.best[0].plan)};
  for (const Candidate& c : result.others) {
    EXPECT_TRUE(families.insert(family_of(c.plan)).second);
    EXPECT_GE(c.simulation.iteration_s, result.best_s);
  }
}

// Each of them is its family's best, to 0.5 %: what a search for this family finds.
TEST(SearchFamilies, OtherFamiliesAreShownAtTheirBest) {
  SearchRequest request = small_problem();
  request.best = 1;
  request.others = 9;
  request.gap = 0.001;
  const SearchResult result = search_families(request);
  ASSERT_GE(result.others.size(), 4U);
  for (const Candidate& other : result.others) {
    SCOPED_TRACE(program::summary(other.plan));
    SearchRequest fixed = request;
    fixed.others = 0;
    fixed.gap = 0;
    fixed.job.plan = other.plan;
    for (const char* field : {"tensor", "context", "pipeline", "data", "expert", "expert_tensor"}) {
      fixed.fixed.insert(field);
    }
    const SearchResult best = search_families(with_fields_settled(fixed));
    ASSERT_FALSE(best.best.empty());
    EXPECT_LE(other.simulation.iteration_s, best.best_s * 1.005);
  }
}

// Where overlap costs nothing that the search could tell, the answer overlaps: trainers do unless they are told not to.
TEST(SearchFamilies, OverlapsWhereItCostsNothing) {
  SearchRequest request = small_problem();
  request.best = 1;
  request.gap = 0.001;
  const SearchResult result = search_families(request);
  ASSERT_FALSE(result.best.empty());
  for (const program::Plan& other : with_more_overlap(result.best[0].plan, request)) {
    program::Job job = request.job;
    job.plan = other;
    const auto takes = iteration(job, request.cluster, true);
    if (const auto* ps = std::get_if<std::int64_t>(&takes)) {
      EXPECT_GT(static_cast<double>(*ps), static_cast<double>(result.best[0].simulation.iteration_ps));
    }
  }
}

}  // namespace
}  // namespace trivium::planner
