// Where the groups of a mesh lie: the short way of like nodes against counting members node by node.
#include "simulator/collectives/places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "tests/simulator/collectives/example_nodes.h"

namespace trivium::simulator {
namespace {

using program::Group;

using Figures = std::tuple<int, int, int, int>;

std::vector<Figures> sorted(const std::vector<GroupPlacement>& placements) {
  std::vector<Figures> figures;
  for (const GroupPlacement& p : placements) figures.emplace_back(p.ranks, p.nodes, p.ranks_per_node, p.sharing);
  std::sort(figures.begin(), figures.end());
  return figures;
}

// A cluster of two groups of the same node is looked at rank by rank.
TEST(Places, OfLikeNodesAreThoseThatCountingMembersFinds) {
  std::mt19937 random(3);
  const auto one_of = [&](std::initializer_list<int> values) {
    return *(values.begin() + std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random));
  };
  const char* orders[] = {"tensor-context-data-pipeline", "tensor-pipeline-context-data",
                          "tensor-data-context-pipeline"};
  int several = 0, compared = 0;
  for (int i = 0; i < 400; ++i) {
    program::Plan plan;
    plan.tensor = one_of({1, 2, 3, 4, 6, 8, 16});
    plan.context = one_of({1, 1, 2, 4});
    plan.pipeline = one_of({1, 2, 3, 4, 8});
    plan.data = one_of({1, 2, 4, 6, 12, 32});
    plan.placement = orders[one_of({0, 1, 2})];
    if (plan.data % 2 == 0) plan.shard_group = one_of({0, 2});
    if (plan.tensor % 2 == 0) plan.expert_tensor = one_of({0, 1, 2});
    plan.expert = program::tensor_parts_of_experts(plan) * (plan.data % 2 == 0 ? one_of({1, 2}) : 1);
    const program::Mesh mesh(plan);
    const int nodes = mesh.size() / 8 + 1;
    hardware::Cluster like, named;
    like.groups.push_back({fast_node(), 2 * nodes, 0});
    named.groups.assign(2, {fast_node(), nodes, 0});
    for (const Group group : {Group::kTensor, Group::kContext, Group::kData, Group::kShard, Group::kReplica,
                              Group::kExpert, Group::kExpertTensor, Group::kExpertData}) {
      const int rank = mesh.rank({0, 0, 0, plan.pipeline - 1});
      const auto quick = sorted(placements_of(mesh, like, group, rank));
      auto counted = sorted(placements_of(mesh, named, group, rank));
      SCOPED_TRACE(testing::Message() << plan.tensor << ' ' << plan.context << ' ' << plan.pipeline << ' ' << plan.data
                                      << ' ' << plan.placement << ' ' << static_cast<int>(group));
      EXPECT_EQ(quick, counted);
      several += quick.size() > 1 ? 1 : 0;
      ++compared;
    }
  }
  EXPECT_GT(several, compared / 20);
}

}  // namespace
}  // namespace trivium::simulator
