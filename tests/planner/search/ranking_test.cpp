// What is answered of all that was found, and what may still be faster.
#include "planner/search/ranking.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace trivium::planner {
namespace {

Candidate plan_of(int data, int micro_batch, std::int64_t ps) {
  Candidate candidate;
  candidate.plan.data = data;
  candidate.plan.micro_batch = micro_batch;
  candidate.simulation.iteration_ps = ps;
  return candidate;
}

std::vector<std::int64_t> times_of(const std::vector<Candidate>& candidates) {
  std::vector<std::int64_t> times;
  for (const Candidate& candidate : candidates) times.push_back(candidate.simulation.iteration_ps);
  return times;
}

// The first plan was found in two ways: counted twice, it would keep the third from being looked for.
TEST(Ranking, APlanThatWasFoundTwiceCountsOnce) {
  SearchRequest request;
  request.best = 2;
  std::vector<Candidate> best{plan_of(1, 1, 30), plan_of(2, 1, 20), plan_of(2, 1, 20)};
  keep_best(best, request);
  EXPECT_EQ(times_of(best), (std::vector<std::int64_t>{20, 30}));
  EXPECT_EQ(limit_behind(best, request), 30);
}

// Fields that no summary shows make another plan.
TEST(Ranking, PlansOfOneSummaryMayDiffer) {
  SearchRequest request;
  request.best = 3;
  std::vector<Candidate> best{plan_of(2, 1, 20), plan_of(2, 1, 21)};
  best.back().plan.overlap.pipeline = !best.back().plan.overlap.pipeline;
  keep_best(best, request);
  EXPECT_EQ(best.size(), 2U);
}

TEST(Ranking, DistinctKeepsTheFastestOfAFamily) {
  SearchRequest request;
  request.best = 2;
  request.distinct = true;
  std::vector<Candidate> best{plan_of(2, 4, 22), plan_of(2, 1, 20), plan_of(4, 1, 40)};
  keep_best(best, request);
  EXPECT_EQ(times_of(best), (std::vector<std::int64_t>{20, 40}));
}

TEST(Ranking, TheLimitIsTheLastOfTheBestLessTheGap) {
  SearchRequest request;
  request.best = 2;
  std::vector<Candidate> best{plan_of(1, 1, 1000)};
  EXPECT_EQ(limit_behind(best, request), std::numeric_limits<std::int64_t>::max());  // one is still missing
  best.push_back(plan_of(2, 1, 1100));
  EXPECT_EQ(limit_behind(best, request), 1100);
  request.gap = 0.1;
  EXPECT_EQ(limit_behind(best, request), 990);
  request.limit_ps = 900;
  EXPECT_EQ(limit_behind(best, request), 900);
}

}  // namespace
}  // namespace trivium::planner
