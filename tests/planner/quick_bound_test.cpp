#include "planner/quick_bound.h"

#include <gtest/gtest.h>

#include "planner/evaluate.h"
#include "planner/space.h"
#include "simulator/analytic/sketch.h"
#include "tests/planner/problems.h"

namespace trivium::planner {
namespace {

// What refuses or passes over a plan must never be above what a full look at it says.
TEST(QuickBound, IsNeverAboveTheMemoryAndTheTimeOfAPlan) {
  std::mt19937 random(17);
  std::int64_t tight = 0, plans = 0;
  for (int i = 0; i < 40; ++i) {
    const SearchRequest request = random_problem(random);
    QuickBound quick(request.job, request.cluster);
    const std::vector<program::Plan> all = enumerate(request);
    for (std::size_t p = 0; p < all.size(); p += 3) {
      program::Job job = request.job;
      job.plan = all[p];
      if (refusal(job, request.cluster, ranks_of(request))) continue;
      SCOPED_TRACE(program::summary(job.plan) + " on " + request.cluster.name);
      std::int64_t needed = 0;
      for (const simulator::StageMemory& stage : simulator::Sketch(job, request.cluster).memory(job.plan)) {
        needed = std::max(needed, stage.total() - stage.reserved);
      }
      EXPECT_LE(quick.memory_bytes(job.plan), needed);
      const auto iteration = quick_iteration(job, request.cluster, false);
      ASSERT_TRUE(std::holds_alternative<std::int64_t>(iteration));
      EXPECT_LE(quick.time_ps(job.plan), std::get<std::int64_t>(iteration));
      tight += 2 * quick.time_ps(job.plan) > std::get<std::int64_t>(iteration) ? 1 : 0;
      ++plans;
    }
  }
  EXPECT_GT(plans, 100);
  EXPECT_GT(tight, 0);  // a bound of nothing would pass too
}

}  // namespace
}  // namespace trivium::planner
