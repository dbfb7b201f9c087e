// The certificate of a search, checked by playing every plan of a space of thousands.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/evaluate.h"
#include "planner/parallel.h"
#include "planner/search.h"
#include "planner/space.h"

namespace trivium::planner {
namespace {

TEST(ExhaustiveSearch, FindsNothingFasterThanTheSearchProved) {
  SearchRequest request;
  request.job.model = models::load_model("gpt3-2.7b");
  request.job.training.sequence = 2048;
  request.job.training.global_batch = 32;
  request.cluster = hardware::load_cluster("dgx1-v100-32gb:2");
  request.job.plan.precision = program::DType::kFp16;
  request.best = 1;
  const SearchResult result = search(request, 0, {}, {});
  ASSERT_TRUE(result.proved);
  ASSERT_EQ(result.best.size(), 1U);

  const std::vector<program::Plan> plans = enumerate(request);
  EXPECT_EQ(static_cast<std::int64_t>(plans.size()), result.plans_in_space);
  EXPECT_GT(plans.size(), 3000U);
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> played(plans.size(), kNone);
  run_parallel(
      plans.size(), 2, {},
      [&](std::size_t i) {
        program::Job job = request.job;
        job.plan = plans[i];
        if (refusal(job, request.cluster, ranks_of(request))) return;
        const auto iteration = quick_iteration(job, request.cluster, true);
        if (const auto* ps = std::get_if<std::int64_t>(&iteration)) played[i] = *ps;
      },
      [](std::size_t) {});
  const std::int64_t fastest = *std::min_element(played.begin(), played.end());
  EXPECT_NEAR(result.best_s, static_cast<double>(fastest) * 1e-12, 1e-12);
  const auto runs = std::count_if(played.begin(), played.end(), [](std::int64_t ps) { return ps != kNone; });
  EXPECT_LE(static_cast<std::int64_t>(plans.size()) - runs, result.plans_infeasible + result.plans_bounded);
  EXPECT_LT(result.plans_simulated, runs);
}

}  // namespace
}  // namespace trivium::planner
