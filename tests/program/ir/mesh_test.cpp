#include "program/ir/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace trivium::program {
namespace {

using ::testing::ElementsAre;

Plan two_by_two_by_two() {
  Plan plan;
  plan.tensor = plan.data = plan.pipeline = 2;
  return plan;
}

std::vector<std::string> all_placements() {
  std::vector<std::string> words{"context", "data", "pipeline", "tensor"}, placements;
  do {
    placements.push_back(words[0] + "-" + words[1] + "-" + words[2] + "-" + words[3]);
  } while (std::next_permutation(words.begin(), words.end()));
  return placements;
}

TEST(Mesh, RanksAndCoordinatesAreABijectionInEveryPlacement) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> extent(1, 5);
  const auto placements = all_placements();
  ASSERT_EQ(placements.size(), 24u);  // 4!
  for (const std::string& placement : placements) {
    Plan plan;
    plan.tensor = extent(random), plan.context = extent(random), plan.data = extent(random),
    plan.pipeline = extent(random);
    plan.placement = placement;
    const Mesh mesh(plan);
    ASSERT_EQ(mesh.size(), plan.tensor * plan.context * plan.data * plan.pipeline);
    for (int rank = 0; rank < mesh.size(); ++rank) {
      const Coordinates at = mesh.coordinates(rank);
      ASSERT_LT(at.tensor, plan.tensor);
      ASSERT_LT(at.context, plan.context);
      ASSERT_LT(at.data, plan.data);
      ASSERT_LT(at.pipeline, plan.pipeline);
      ASSERT_EQ(mesh.rank(at), rank) << placement;
    }
  }
}

TEST(Mesh, GroupsOfTwoByTwoByTwoByHand) {
  // tensor fastest, then data, then pipeline: rank = tensor + 2 data + 4 pipeline. Rank 5 is tensor 1, data 0, stage 1.
  const Mesh mesh(two_by_two_by_two());
  EXPECT_EQ(mesh.coordinates(5), (Coordinates{1, 0, 0, 1}));
  EXPECT_THAT(mesh.members(Group::kNone, 5), ElementsAre(5));
  EXPECT_THAT(mesh.members(Group::kTensor, 5), ElementsAre(4, 5));
  EXPECT_THAT(mesh.members(Group::kData, 5), ElementsAre(5, 7));
  EXPECT_THAT(mesh.members(Group::kPipeline, 5), ElementsAre(1, 5));
  EXPECT_THAT(mesh.members(Group::kEmbedding, 5), ElementsAre(1, 5));
  EXPECT_THAT(mesh.members(Group::kModel, 5), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(mesh.members(Group::kWorld, 5), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(Mesh, TheFirstWordOfThePlacementIsInnermost) {
  // rank = data + 2 pipeline + 4 tensor: rank 5 is data 1, stage 0, tensor 1.
  Plan plan = two_by_two_by_two();
  plan.placement = "data-context-pipeline-tensor";
  const Mesh mesh(plan);
  EXPECT_EQ(mesh.coordinates(5), (Coordinates{1, 0, 1, 0}));
  EXPECT_THAT(mesh.members(Group::kData, 5), ElementsAre(4, 5));
  EXPECT_THAT(mesh.members(Group::kPipeline, 5), ElementsAre(5, 7));
  EXPECT_THAT(mesh.members(Group::kTensor, 5), ElementsAre(1, 5));
}

TEST(Mesh, TheEmbeddingGroupIsFirstAndLastStage) {
  Plan plan;
  plan.tensor = 2, plan.pipeline = 4;  // rank = tensor + 2 stage
  EXPECT_THAT(Mesh(plan).members(Group::kEmbedding, 1), ElementsAre(1, 7));
  EXPECT_THAT(Mesh(plan).members(Group::kEmbedding, 6), ElementsAre(0, 6));
  plan.pipeline = 1;
  EXPECT_THAT(Mesh(plan).members(Group::kEmbedding, 1), ElementsAre(1));
}

TEST(Mesh, ContextRanksHoldTheSameParametersAndReduceWithTheReplicas) {
  Plan plan;
  plan.context = 2, plan.data = 2;
  EXPECT_THAT(Mesh(plan).members(Group::kData, 0), ElementsAre(0, 1, 2, 3));
}

TEST(Mesh, EveryGroupHasItsSizeHoldsItsRankAndIsTheSameForAllMembers) {
  for (const std::string& placement : all_placements()) {
    Plan plan;
    plan.tensor = 2, plan.data = 3, plan.pipeline = 4, plan.placement = placement;
    const Mesh mesh(plan);
    for (const Group group :
         {Group::kNone, Group::kTensor, Group::kData, Group::kPipeline, Group::kModel, Group::kWorld}) {
      for (int rank = 0; rank < mesh.size(); ++rank) {
        const auto members = mesh.members(group, rank);
        ASSERT_EQ(static_cast<int>(members.size()), mesh.group_size(group)) << name_of(group);
        ASSERT_EQ(std::count(members.begin(), members.end(), rank), 1);
        for (const int member : members) ASSERT_EQ(mesh.members(group, member), members);
      }
    }
  }
}

// Tensor 2, data 4 in shard groups of 2: ranks 0 2 | 4 6 of tensor rank 0 share, 0 4 and 2 6 hold the same.
TEST(Mesh, ShardGroupsAreNeighbouringReplicas) {
  Plan plan;
  plan.tensor = 2, plan.data = 4, plan.zero_stage = 3, plan.shard_group = 2;
  const Mesh mesh(plan);
  EXPECT_THAT(mesh.members(Group::kShard, 2), ElementsAre(0, 2));
  EXPECT_THAT(mesh.members(Group::kShard, 7), ElementsAre(5, 7));
  EXPECT_THAT(mesh.members(Group::kReplica, 2), ElementsAre(2, 6));
  EXPECT_THAT(mesh.members(Group::kReplica, 5), ElementsAre(1, 5));
  EXPECT_EQ(mesh.group_size(Group::kShard), 2);
  EXPECT_EQ(mesh.group_size(Group::kReplica), 2);
  EXPECT_EQ(mesh.shard_rank(6), 1);
  EXPECT_EQ(mesh.shard_replica(6), 1);
  EXPECT_EQ(mesh.shard_rank(4), 0);
  plan.shard_group = 0;  // all of data
  EXPECT_THAT(Mesh(plan).members(Group::kShard, 2), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(Mesh(plan).members(Group::kReplica, 2), ElementsAre(2));
  EXPECT_EQ(Mesh(plan).shard_rank(6), 3);
}

// Tensor 4 with two key heads: ranks 0 2 | 4 6 of context rank 0, which is innermost here, hold one each.
TEST(Mesh, NeighbouringTensorRanksHoldAKeyHead) {
  Plan plan;
  plan.tensor = 4, plan.context = 2, plan.placement = "context-tensor-data-pipeline";
  const Mesh mesh(plan, 2);
  EXPECT_THAT(mesh.members(Group::kKeys, 2), ElementsAre(0, 2));
  EXPECT_THAT(mesh.members(Group::kKeys, 4), ElementsAre(4, 6));
  EXPECT_THAT(mesh.members(Group::kKeys, 7), ElementsAre(5, 7));
  EXPECT_EQ(mesh.group_size(Group::kKeys), 2);
  EXPECT_THAT(Mesh(plan).members(Group::kKeys, 4), ElementsAre(4));
}

// Tensor ranks 0 1 | 2 3 split experts in two, so each shares them with every second one, over two of four replicas:
// four parts of the experts in all, of which rank 9 (tensor 1, data 2) holds the first.
TEST(Mesh, SomeTensorRanksSplitExpertsThatOthersDoNotHold) {
  Plan plan;
  plan.tensor = 4, plan.data = 4, plan.expert = 4, plan.expert_tensor = 2;
  const Mesh mesh(plan);
  EXPECT_THAT(mesh.members(Group::kExpertTensor, 5), ElementsAre(4, 5));
  EXPECT_THAT(mesh.members(Group::kExpertTensor, 6), ElementsAre(6, 7));
  EXPECT_THAT(mesh.members(Group::kExpert, 9), ElementsAre(9, 11, 13, 15));
  EXPECT_THAT(mesh.members(Group::kExpert, 6), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(mesh.members(Group::kExpertData, 9), ElementsAre(1, 9));
  EXPECT_EQ(mesh.expert_rank(mesh.coordinates(9)), 0);
  EXPECT_EQ(mesh.expert_rank(mesh.coordinates(8)), 0);
  EXPECT_EQ(mesh.expert_rank(mesh.coordinates(6)), 3);
  EXPECT_EQ(mesh.expert(), 4);
  EXPECT_EQ(mesh.expert_replicas(), 2);
  EXPECT_EQ(mesh.group_size(Group::kExpert), 4);
  EXPECT_EQ(mesh.group_size(Group::kExpertTensor), 2);
  EXPECT_EQ(mesh.group_size(Group::kExpertData), 2);
}

// Context ranks hold the same parameters, so they share shards with the replicas.
TEST(Mesh, ShardGroupsHoldContextRanks) {
  Plan plan;
  plan.context = 2, plan.data = 2, plan.zero_stage = 1;
  const Mesh mesh(plan);
  EXPECT_THAT(mesh.members(Group::kShard, 1), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(mesh.shard_rank(3), 3);
}

}  // namespace
}  // namespace trivium::program
