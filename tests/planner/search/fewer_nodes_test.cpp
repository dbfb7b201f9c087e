// Nodes that stay idle where fewer divide the work better.
#include "planner/search/fewer_nodes.h"

#include <gtest/gtest.h>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/search/search.h"

namespace trivium::planner {
namespace {

SearchRequest job(const char* model, const char* cluster, std::int64_t batch) {
  SearchRequest request;
  request.job.model = models::load_model(model);
  request.job.training.sequence = 1024;
  request.job.training.global_batch = batch;
  request.cluster = hardware::load_cluster(cluster);
  request.best = 1;
  return request;
}

// 3,080 devices are 5 x 7 x 11 x 8: of 3,072 samples eight replicas at most get the same number, and no pipeline of 7
// or 11 stages has as many of the 128 layers on each.
TEST(CountsOfNodes, BeginWithTheOneThatDividesTheWorkBest) {
  const CountsOfNodes odd = counts_of_nodes(job("megatron-1008.0b", "dgx-a100-80gb:385", 3072));
  ASSERT_FALSE(odd.light.empty());
  EXPECT_EQ(odd.light.front(), 384);
  EXPECT_EQ(odd.light.back(), 385);
}

TEST(CountsOfNodes, AreLightWithAllNodesAloneWhereThoseDivideIt) {
  const CountsOfNodes even = counts_of_nodes(job("gpt3-175b", "dgx-a100-80gb:128", 1536));
  EXPECT_EQ(even.light, std::vector<int>{128});
  EXPECT_EQ(even.heavy.size(), 3u);
  for (const int count : even.heavy) EXPECT_GE(count, 96);  // a quarter idle at most
}

TEST(CountsOfNodes, OfOneNodeThereIsOne) {
  const CountsOfNodes one = counts_of_nodes(job("gpt2-124m", "dgx-a100-80gb:1", 64));
  EXPECT_EQ(one.light, std::vector<int>{1});
  EXPECT_TRUE(one.heavy.empty());
}

TEST(IdleNodes, MakeOneNodeMoreNoSlower) {
  SearchRequest four = job("gpt2-124m", "dgx-a100-80gb:4", 64), five = job("gpt2-124m", "dgx-a100-80gb:5", 64);
  const SearchResult of_four = search(four, 2, {}, {}), of_five = search(five, 2, {}, {});
  SearchRequest all = five;
  all.ranks = 40;
  const SearchResult on_all = search(all, 2, {}, {});
  ASSERT_FALSE(of_five.best.empty());
  EXPECT_LE(of_five.best.front().simulation.iteration_ps, of_four.best.front().simulation.iteration_ps);
  EXPECT_GT(on_all.best.front().simulation.iteration_ps, of_five.best.front().simulation.iteration_ps);
  EXPECT_EQ(of_five.nodes_used, 4);
  EXPECT_EQ(of_four.nodes_used, 0);
  EXPECT_TRUE(of_five.proved);
  EXPECT_GE(of_five.best_s, of_five.bound_s);
}

}  // namespace
}  // namespace trivium::planner
