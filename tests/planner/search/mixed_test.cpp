// Clusters of heterogeneous nodes: when the slow ones help, and when they are better left alone.
#include "planner/search/mixed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/bound/evaluate.h"
#include "planner/search/search.h"
#include "planner/space/space.h"

namespace trivium::planner {
namespace {

using testing::HasSubstr;

SearchRequest request_for(const char* model, const char* cluster, std::int64_t batch) {
  SearchRequest request;
  request.job.model = models::load_model(model);
  request.job.training.sequence = 1024;
  request.job.training.global_batch = batch;
  request.job.plan.precision = program::DType::kFp16;  // all that a V100 has
  request.cluster = hardware::load_cluster(cluster);
  request.best = 3;
  return request;
}

const Alternative& named(const SearchResult& result, const std::string& name) {
  return *std::find_if(result.alternatives.begin(), result.alternatives.end(),
                       [&](const Alternative& a) { return a.name == name; });
}

std::int64_t iteration_of(const Alternative& a) { return a.best ? a.best->simulation.iteration_ps : -1; }

// A V100 does .4 of an A100's work: together the nodes do 1.4 of what the A100s do alone, and .8 x 2 of it where both
// are held to the V100's pace. With many micro-batches the pipeline that joins them has little to lose.
TEST(MixedSearch, SlowNodesHelpWhereLayersAreDividedByTheirSpeed) {
  const SearchResult result = search(request_for("gpt3-2.7b", "dgx-a100-80gb:1+dgx1-v100-32gb:1", 512), 2, {}, {});
  ASSERT_EQ(result.alternatives.size(), 4U);
  const Alternative& mixed = named(result, "mixed");
  ASSERT_TRUE(mixed.best.has_value());
  EXPECT_LT(iteration_of(mixed), iteration_of(named(result, "fast nodes only")));
  EXPECT_LT(iteration_of(mixed), iteration_of(named(result, "all treated as slow")));
  ASSERT_FALSE(result.best.empty());
  // Only replicas with micro-batches of their own may be faster still.
  EXPECT_EQ(result.best.front().simulation.iteration_ps,
            std::min(iteration_of(mixed), iteration_of(named(result, "replicas by kind"))));
  EXPECT_TRUE(result.proved);
  // The layers of the A100 stages and of the V100 stages stand as their speeds do: 312 to 125 TFLOP/s, and the V100 has
  // the slower host and memory.
  const program::Plan& plan = mixed.best->plan;
  ASSERT_EQ(plan.stage_nodes.size(), static_cast<std::size_t>(plan.pipeline));
  ASSERT_EQ(plan.stage_layers.size(), static_cast<std::size_t>(plan.pipeline));
  int fast = 0, slow = 0;
  for (std::size_t s = 0; s < plan.stage_layers.size(); ++s) {
    (plan.stage_nodes[s] == 0 ? fast : slow) += plan.stage_layers[s];
  }
  EXPECT_EQ(fast + slow, 32);
  EXPECT_GE(fast, 2 * slow);
  EXPECT_GT(slow, 0);
}

// Two like nodes in two places: with nothing between them replicas share the nodes; over 40 Gb/s only what stages send
// is worth it, and over 1 Gb/s one node alone is faster.
TEST(MixedSearch, SitesThatAreFarApartAreJoinedByLess) {
  SearchRequest request = request_for("gpt3-2.7b", "dgx-a100-80gb:1+dgx-a100-80gb:1", 64);
  request.cluster.groups.back().site = 1;
  // What divides the layers and the samples between the sites is open; the rest would take minutes.
  request.fixed.insert({"offload.activations", "offload.optimizer", "overlap.tensor", "compression", "zero_stage"});
  const auto best_over = [&](double bytes_per_second, double latency) {
    request.cluster.links = {{0, 1, {base::BytesPerSecond(bytes_per_second), base::Seconds(latency), 1}, "test"}};
    const SearchResult result = search(request, 2, {}, {});
    EXPECT_TRUE(result.proved);
    return result.best.front();
  };
  const Candidate near = best_over(1e12, 0), far = best_over(5e9, 1e-3), farthest = best_over(125e6, 1e-3);
  EXPECT_LT(near.simulation.iteration_ps, far.simulation.iteration_ps);
  EXPECT_LT(far.simulation.iteration_ps, farthest.simulation.iteration_ps);
  EXPECT_EQ(near.plan.ranks(), 16);
  EXPECT_EQ(far.plan.ranks(), 16);
  EXPECT_GT(far.plan.pipeline, 1);
  EXPECT_EQ(far.plan.stage_nodes.front(), 0);
  EXPECT_EQ(far.plan.stage_nodes.back(), 1);
  EXPECT_EQ(farthest.plan.ranks(), 8);
}

// One sample a step cannot be pipelined: whatever a slow node takes over, the fast ones wait for it.
TEST(MixedSearch, SlowNodesAreLeftAloneWhereNothingCanBePipelined) {
  const SearchResult result = search(request_for("gpt3-2.7b", "dgx-a100-80gb:1+dgx1-v100-32gb:1", 1), 2, {}, {});
  const Alternative& fast = named(result, "fast nodes only");
  ASSERT_TRUE(fast.best.has_value());
  ASSERT_TRUE(named(result, "mixed").best.has_value());
  EXPECT_LT(iteration_of(fast), iteration_of(named(result, "mixed")));
  EXPECT_LT(iteration_of(fast), iteration_of(named(result, "all treated as slow")));
  EXPECT_EQ(program::summary(result.best.front().plan), program::summary(fast.best->plan));
  EXPECT_EQ(fast.nodes, "dgx-a100-80gb:1");
}

// The fast nodes need not come first: their plans say where they are.
TEST(MixedSearch, FastNodesAreFoundWhereverTheyStand) {
  const SearchRequest request = request_for("gpt3-2.7b", "dgx1-v100-32gb:1+dgx-a100-80gb:1", 1);
  const SearchResult result = search(request, 2, {}, {});
  const Alternative& fast = named(result, "fast nodes only");
  ASSERT_TRUE(fast.best.has_value());
  program::Job job = request.job;
  job.plan = fast.best->plan;
  EXPECT_EQ(job.plan.stage_nodes, std::vector<int>(static_cast<std::size_t>(job.plan.pipeline), 1));
  const auto there = full_simulation(job, request.cluster);
  ASSERT_TRUE(there.ok());
  EXPECT_EQ(there.value().iteration_ps, iteration_of(fast));
}

// A plan file may hold any placement, which says nothing of a search that leaves it open; where it is fixed, stages
// cannot be told the fast nodes, and no plan may be said to run there.
TEST(MixedSearch, PlansTakeOnTheWholeClusterWhatIsSaidOfThem) {
  SearchRequest request = request_for("gpt3-2.7b", "dgx1-v100-32gb:1+dgx-a100-80gb:1", 16);
  request.others = 5;
  const SearchResult usual = search(request, 2, {}, {});
  request.job.plan.placement = "tensor-context-pipeline-data";
  const SearchResult open = search(request, 2, {}, {});
  ASSERT_FALSE(usual.best.empty());
  EXPECT_EQ(open.best.front().simulation.iteration_ps, usual.best.front().simulation.iteration_ps);
  EXPECT_EQ(program::summary(open.best.front().plan), program::summary(usual.best.front().plan));
  request.fixed.insert("placement");
  const SearchResult held = search(request, 2, {}, {});
  const Alternative& fast = named(held, "fast nodes only");
  EXPECT_FALSE(fast.best.has_value());
  EXPECT_THAT(fast.why_not, HasSubstr("pipeline comes last in the placement"));
  for (const SearchResult* result : {&usual, &held}) {
    for (const auto* candidates : {&result->best, &result->others}) {
      for (const Candidate& candidate : *candidates) {
        program::Job job = request.job;
        job.plan = candidate.plan;
        const auto there = full_simulation(job, request.cluster);
        ASSERT_TRUE(there.ok()) << program::summary(job.plan);
        EXPECT_EQ(there.value().iteration_ps, candidate.simulation.iteration_ps) << program::summary(job.plan);
      }
    }
  }
}

TEST(MixedSearch, WhatAV100LacksIsRefusedWhereOneTakesPart) {
  SearchRequest request = request_for("gpt3-2.7b", "dgx-a100-80gb:1+dgx1-v100-32gb:1", 64);
  request.job.plan.precision = program::DType::kBf16;
  const SearchResult result = search(request, 2, {}, {});
  EXPECT_THAT(named(result, "mixed").why_not, HasSubstr("no bf16 arithmetic"));
  EXPECT_THAT(named(result, "all treated as slow").why_not, HasSubstr("no bf16 arithmetic"));
  EXPECT_TRUE(named(result, "fast nodes only").best.has_value());
  request.job.plan.precision = program::DType::kFp16;
  request.job.plan.attention = program::Attention::kFlash;
  EXPECT_THAT(named(search(request, 2, {}, {}), "mixed").why_not, HasSubstr("no flash attention"));
}

TEST(MixedSearch, BothOrdersOfTheGroupsAreInTheSpace) {
  SearchRequest request = request_for("gpt3-2.7b", "dgx-a100-80gb:1+dgx1-v100-32gb:1", 64);
  request.job.plan.tensor = 4;
  request.job.plan.pipeline = 4;
  request.fixed = {"tensor",   "pipeline",       "micro_batch",       "recompute",          "sequence_parallel",
                   "schedule", "overlap.tensor", "offload.optimizer", "offload.activations"};
  std::vector<std::vector<int>> orders;
  for (const Member& member : enumerate(request)) {
    if (member.plan.zero_stage == 0) orders.push_back(member.plan.stage_nodes);
  }
  EXPECT_THAT(orders, testing::UnorderedElementsAre(std::vector<int>{}, std::vector<int>{0, 0, 1, 1},
                                                    std::vector<int>{1, 1, 0, 0}));
}

}  // namespace
}  // namespace trivium::planner
