// The certificate of a search, checked by simulating every plan of a space of thousands.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <random>
#include <vector>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/bound/balance.h"
#include "planner/bound/evaluate.h"
#include "planner/search/one_space.h"
#include "planner/search/parallel.h"
#include "planner/search/search.h"
#include "planner/space/space.h"
#include "tests/sanitized.h"

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
  // What is left is thousands of plans; the other fields are open in the random problems of search_test.cpp.
  request.fixed = {"placement",           "overlap.tensor",    "stage_recompute", "stage_layers",
                   "offload.activations", "offload.optimizer", "compression"};
  const SearchResult result = search_as_given(request, 0, {}, {});
  ASSERT_TRUE(result.proved);
  ASSERT_EQ(result.best.size(), 1U);

  const std::vector<Member> plans = enumerate(request);
  EXPECT_EQ(static_cast<std::int64_t>(plans.size()), result.plans_in_space);
  EXPECT_GT(plans.size(), 3000U);
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> simulated(plans.size(), kNone);
  run_parallel(
      plans.size(), 2, {},
      [&](std::size_t i) {
        program::Job job = request.job;
        job.plan = plans[i].plan;
        if (refusal(job, request.cluster, ranks_of(request))) return;
        if (plans[i].balanced) {
          simulator::CostEstimator estimator(job, request.cluster);
          auto layered = balanced(estimator, job.plan, static_cast<int>(job.model.layers), false);
          if (!std::holds_alternative<program::Plan>(layered)) return;
          job.plan = std::get<program::Plan>(layered);
        }
        const auto alone = iteration(job, request.cluster, true);
        if (const auto* ps = std::get_if<std::int64_t>(&alone)) simulated[i] = *ps;
      },
      [](std::size_t) {});
  const std::int64_t fastest = *std::min_element(simulated.begin(), simulated.end());
  EXPECT_NEAR(result.best_s, static_cast<double>(fastest) * 1e-12, 1e-12);
  const auto runs = std::count_if(simulated.begin(), simulated.end(), [](std::int64_t ps) { return ps != kNone; });
  EXPECT_LE(static_cast<std::int64_t>(plans.size()) - runs, result.plans_infeasible + result.plans_bounded);
  EXPECT_LT(result.plans_simulated, runs);
}

// Of the whole space of a large problem a sample is simulated, lowered from scratch: nothing beats the optimum, and
// where a plan was refused for its memory, lowering it says so too.
TEST(ExhaustiveSearch, NoPlanOfASampleBeatsTheOptimumOfMillions) {
  SearchRequest request;
  request.job.model = models::load_model("gpt3-175b");
  request.job.training.sequence = 2048;
  request.job.training.global_batch = 512;
  request.cluster = hardware::load_cluster("dgx-a100-80gb:64");
  request.best = 1;
  request.gap = .001;
  request.constraints = closed_unless_allowed({}, {});
  const SearchResult result = search_as_given(request, 0, {}, {});
  ASSERT_TRUE(result.proved);
  EXPECT_GE(result.bound_s, 0.999 * result.best_s);
  const Space space(request);
  EXPECT_EQ(space.count(), result.plans_in_space);
  EXPECT_GT(result.plans_in_space, 1'000'000);
  std::mt19937 random(41);
  const auto any = [&](const auto& values) -> const auto& {
    return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
  };
  constexpr int kSample = kSanitized ? 200 : 3000;
  int simulated = 0;
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kSample; ++i) {
    const program::Plan split = any(space.splits());
    const PlacementChoice layout = any(space.layouts(split));
    const ScheduleChoice shape = any(space.shapes(split, layout));
    if (shape.balanced) continue;
    const RecomputeChoice recompute_choice = any(space.recompute_choices(split, shape));
    program::Job job = request.job;
    job.plan = with(with(with(with(split, layout), shape), recompute_choice), any(space.states(split, layout, shape)));
    if (broken_by(request.constraints, job.plan) || refusal(job, request.cluster, ranks_of(request))) continue;
    const auto alone = iteration(job, request.cluster, true);
    const auto* ps = std::get_if<std::int64_t>(&alone);
    if (ps == nullptr) continue;
    ++simulated;
    fastest = std::min(fastest, static_cast<double>(*ps) * 1e-12);
  }
  std::cout << simulated << " plans of " << kSample << " drawn were simulated\n";
  EXPECT_GT(simulated, kSample / 20);
  EXPECT_GE(fastest, result.best_s * (1 - request.gap));
}

}  // namespace
}  // namespace trivium::planner
