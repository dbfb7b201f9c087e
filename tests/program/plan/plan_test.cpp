#include "program/plan/plan.h"

#include <gtest/gtest.h>

#include <set>

#include "program/plan/stack.h"

namespace trivium::program {
namespace {

TEST(PlanSummary, NamesTheSplit) {
  Plan plan;
  EXPECT_EQ(summary(plan), "TP1 PP1 DP1 mb1 recompute=none");
  plan.tensor = 8, plan.sequence_parallel = true, plan.context = 2, plan.pipeline = 16, plan.virtual_stages = 2;
  plan.data = 4, plan.zero_stage = 1, plan.micro_batch = 3;
  plan.schedule = Schedule::kInterleaved, plan.recompute = Recompute::kFull;
  EXPECT_EQ(summary(plan), "TP8 SP CP2 PP16x2 DP4 ZeRO-1 mb3 interleaved no-overlap recompute=full");
  plan.shard_group = 2;
  EXPECT_EQ(summary(plan), "TP8 SP CP2 PP16x2 DP4 ZeRO-1/2 mb3 interleaved no-overlap recompute=full");
}

TEST(Plan, CountsRanksChunksAndMicroBatches) {
  Plan plan;
  plan.tensor = 8, plan.pipeline = 16, plan.virtual_stages = 2, plan.data = 4, plan.micro_batch = 3;
  EXPECT_EQ(plan.ranks(), 512);
  EXPECT_EQ(plan.chunks(), 32);
  EXPECT_EQ(micro_batches(plan, 1536), 128);  // 1536 / (4 x 3)
}

TEST(Stack, IsFoundByItsName) {
  std::set<std::string> names;
  for (const StackTraits& stack : all_stacks()) {
    EXPECT_EQ(find_stack(stack.name), &stack);
    EXPECT_TRUE(names.insert(stack.name).second) << stack.name;
  }
  EXPECT_TRUE(names.contains(Plan{}.stack));
  EXPECT_EQ(find_stack("megatron-2077"), nullptr);
}

TEST(Stack, ShareOfHiddenTimeIsAShare) {
  for (const StackTraits& stack : all_stacks()) {
    EXPECT_GT(stack.memory_traffic, 0) << stack.name;
    EXPECT_GE(stack.vocab_multiple, 1) << stack.name;
  }
}

TEST(PlanSummary, NamesTheRecomputationOfChunksAndAnUnusualPlacement) {
  Plan plan;
  plan.pipeline = 3;
  plan.stage_recompute = {Recompute::kSelective, Recompute::kSelective, Recompute::kNone};
  plan.placement = "data-tensor-context-pipeline";
  EXPECT_NE(summary(plan).find(" recompute=selective:2,none:1 "), std::string::npos) << summary(plan);
  EXPECT_NE(summary(plan).find("placement=data-tensor-context-pipeline"), std::string::npos) << summary(plan);
}

}  // namespace
}  // namespace trivium::program
