// What the field knows, as the search finds it.
#include <gtest/gtest.h>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/search/search.h"
#include "planner/space/space.h"

namespace trivium::planner {
namespace {

program::Plan best_of(const char* model, const char* cluster, std::int64_t batch,
                      program::DType precision = program::DType::kBf16) {
  SearchRequest request;
  request.job.model = models::load_model(model);
  request.job.training.sequence = 1024;
  request.job.training.global_batch = batch;
  request.job.plan.precision = precision;
  request.cluster = hardware::load_cluster(cluster);
  request.best = 1;
  request.gap = .001;
  request.constraints = closed_unless_allowed({}, {});
  const SearchResult result = search(request, 2, {}, {});
  EXPECT_TRUE(result.proved);
  if (result.best.empty()) {
    ADD_FAILURE() << "no plan fits";
    return {};
  }
  return result.best.front().plan;
}

// Narayanan et al. 2021 (arXiv 2104.04473), takeaway 1: tensor parallelism up to the size of a node, pipelines across
// nodes.
TEST(Seeds, Gpt3OnDgxNodesIsTensorParallelInsideThemAndAPipelineAcross) {
  const program::Plan plan = best_of("gpt3-175b", "dgx-a100-80gb:16", 256);
  EXPECT_GT(plan.tensor, 1);
  EXPECT_LE(plan.tensor, 8);
  EXPECT_GT(plan.pipeline, 1);
  EXPECT_TRUE(plan.placement.starts_with("tensor")) << program::summary(plan);
  EXPECT_GT(plan.tensor * plan.pipeline, 8) << program::summary(plan);
}

TEST(Seeds, AModelThatFitsOnADeviceIsReplicated) {
  const program::Plan plan = best_of("gpt2-350m", "dgx-a100-80gb:2", 512);
  EXPECT_EQ(plan.data, 16);
}

// 6.7B parameters, 18 bytes each, are 112 GiB of state: too much for an A100 of 40 GiB, shares of it on eight are not.
TEST(Seeds, AModelThatDoesNotFitOnFewNodesHasItsStateSharded) {
  const program::Plan plan = best_of("gpt3-6.7b", "dgx-a100-40gb:1", 128);
  EXPECT_GT(plan.data, 1);
  EXPECT_GE(plan.zero_stage, 1);
}

}  // namespace
}  // namespace trivium::planner
