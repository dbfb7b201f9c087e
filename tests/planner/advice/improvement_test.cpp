#include "planner/advice/improvement.h"

#include <gtest/gtest.h>

#include <numeric>

#include "hardware_profiles/load.h"
#include "models/load.h"

namespace trivium::planner {
namespace {

program::Job llama_job() {
  program::Job job;
  job.model = models::load_model("llama3-8b");
  job.training.sequence = 8192;
  job.training.global_batch = 32;
  job.plan.tensor = 8;
  job.plan.pipeline = 2;
  job.plan.attention = program::Attention::kFlash;
  job.plan.stack = "megatron-core";
  return job;
}

SearchRequest request_for(const program::Job& job, const hardware::Cluster& cluster) {
  SearchRequest request;
  request.job = job;
  request.cluster = cluster;
  request.fixed = {"stack"};
  request.ranks = cluster.devices();
  request.best = 1;
  return with_fields_settled(for_trainer(std::move(request), *find_trainer_space("megatron")));
}

TEST(Improvement, StepsAddUpToTheWholeGainAndEndAtTheBestPlan) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-h100-80gb:2");
  const program::Job today = llama_job();
  const SearchRequest request = request_for(today, cluster);
  const Improvement found = improvement(today, cluster, request, search(request, 1, {}, {}), {1, {}});
  ASSERT_TRUE(found.today && found.best);
  ASSERT_FALSE(found.steps.empty());
  const double sum = std::accumulate(found.steps.begin(), found.steps.end(), 0.0,
                                     [](double all, const ImprovementStep& step) { return all + step.gain_s; });
  EXPECT_NEAR(sum, found.gain_s(), 1e-9 * found.today->simulation.certainty.expected_s);
  EXPECT_GT(found.gain_s(), 0);
  EXPECT_TRUE(program::differences(found.steps.front().before, today.plan).empty());
  EXPECT_TRUE(program::differences(found.steps.back().after, found.best->plan).empty());
  for (std::size_t i = 1; i < found.steps.size(); ++i) {
    EXPECT_TRUE(program::differences(found.steps[i - 1].after, found.steps[i].before).empty());
  }
  EXPECT_GT(found.probability, 0.5);
  EXPECT_TRUE(found.is_worth_trying());
}

TEST(Improvement, OfTheBestPlanIsNothing) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-h100-80gb:2");
  const SearchRequest request = request_for(llama_job(), cluster);
  const SearchResult result = search(request, 1, {}, {});
  program::Job best = llama_job();
  best.plan = result.best.front().plan;
  const Improvement found = improvement(best, cluster, request, result, {1, {}});
  EXPECT_TRUE(found.steps.empty());
  EXPECT_NEAR(found.gain_s(), 0, 1e-12);
  EXPECT_FALSE(found.is_worth_trying());
}

TEST(Improvement, SaysTheRuleThatRefusesTodaysPlanAndStillHasTheBest) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-h100-80gb:2");
  program::Job today = llama_job();
  today.plan.tensor = 16;
  today.plan.pipeline = 1;
  today.plan.virtual_stages = 2;
  const SearchRequest request = request_for(llama_job(), cluster);
  const Improvement found = improvement(today, cluster, request, search(request, 1, {}, {}), {1, {}});
  EXPECT_FALSE(found.today);
  EXPECT_FALSE(found.refused.empty());
  EXPECT_TRUE(found.best);
  EXPECT_TRUE(found.is_worth_trying());
}

}  // namespace
}  // namespace trivium::planner
