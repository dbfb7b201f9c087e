// What a plan says of every chunk or stage, as text; and counts as people type them.
#include "gui/model/stage_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "gui/model/count_text.h"
#include "gui/model/plan_controls.h"
#include "gui/model/plan_rows.h"
#include "tests/gui/scenarios.h"

namespace trivium::gui {
namespace {

using program::Recompute;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

program::Plan& plan_in(Scenario& scenario) { return scenario.file.job.plan; }
const program::Plan& plan_in(const Scenario& scenario) { return scenario.file.job.plan; }

std::string complaint(const Scenario& scenario, const std::string& field, const std::string& text) {
  try {
    with_list(scenario, field, text);
  } catch (const base::Failure& failure) {
    EXPECT_EQ(failure.error().kind, base::ErrorKind::kUsage);
    return failure.error().message;
  }
  return "taken";
}

TEST(StageLists, AreReadAsTheyAreWritten) {
  Scenario scenario = with_list(staged_scenario(), "stage_recompute", "selective:3,none:1");
  EXPECT_THAT(plan_in(scenario).stage_recompute,
              ElementsAre(Recompute::kSelective, Recompute::kSelective, Recompute::kSelective, Recompute::kNone));
  EXPECT_EQ(list_text(plan_in(scenario), "stage_recompute"), "selective:3, none:1");
  scenario = with_list(std::move(scenario), "stage_layers", " 2x1, 4, 3 x 2 ");  // 2 + 4 + 3 + 3 = 12 layers
  EXPECT_THAT(plan_in(scenario).stage_layers, ElementsAre(2, 4, 3, 3));
  EXPECT_EQ(list_text(plan_in(scenario), "stage_layers"), "2x1, 4x1, 3x2");
  for (const StageList& list : stage_lists()) {
    const std::string text = list_text(plan_in(scenario), list.field);
    EXPECT_EQ(list_text(with_list(scenario, list.field, text).file.job.plan, list.field), text) << list.field;
  }
  scenario = with_list(std::move(scenario), "stage_layers", "");
  EXPECT_TRUE(plan_in(scenario).stage_layers.empty());
}

// Modules stand where something is recomputed selectively, with spaces in their names.
TEST(StageLists, ModulesAreNamesInWords) {
  Scenario scenario = staged_scenario();
  EXPECT_FALSE(list_applies(scenario, "recompute_modules"));
  plan_in(scenario).recompute = Recompute::kSelective;
  EXPECT_TRUE(list_applies(scenario, "recompute_modules"));
  EXPECT_EQ(list_hint(scenario, "recompute_modules"), "core attn");
  scenario = with_list(std::move(scenario), "recompute_modules", " layernorm, core attn,mlp");
  EXPECT_THAT(plan_in(scenario).recompute_modules,
              ElementsAre(program::Module::kLayerNorm, program::Module::kCoreAttention, program::Module::kMlp));
  EXPECT_EQ(list_text(plan_in(scenario), "recompute_modules"), "layernorm, core attn, mlp");
  EXPECT_THAT(complaint(scenario, "recompute_modules", "shared experts"), HasSubstr("no shared experts"));
  EXPECT_TRUE(plan_in(with_list(scenario, "recompute_modules", "")).recompute_modules.empty());
}

// Replicas have a size each, until the number of replicas or the common size says otherwise.
TEST(StageLists, ReplicasHaveMicroBatchesOfTheirOwn) {
  Scenario scenario = staged_scenario();
  plan_in(scenario).data = 3;
  plan_in(scenario).replica_micro_batch = {4, 4, 1};
  EXPECT_EQ(list_text(plan_in(scenario), "replica_micro_batch"), "4x2, 1x1");
  EXPECT_TRUE(list_applies(scenario, "replica_micro_batch"));
  EXPECT_THAT(complaint(scenario, "replica_micro_batch", "4x2"), HasSubstr("2 entries"));
  EXPECT_THAT(complaint(scenario, "replica_micro_batch", "4x2, few"), HasSubstr("few"));
  EXPECT_TRUE(plan_in(with_list(scenario, "replica_micro_batch", "")).replica_micro_batch.empty());
  EXPECT_TRUE(plan_in(turn(scenario, "micro_batch", "2", true)).replica_micro_batch.empty());
  EXPECT_TRUE(plan_in(turn(scenario, "data", "1", false)).replica_micro_batch.empty());
}

TEST(StageLists, SayWhatCannotBe) {
  const Scenario scenario = staged_scenario();  // twelve layers in four stages
  EXPECT_THAT(complaint(scenario, "stage_recompute", "full:3"), HasSubstr("3 entries"));
  EXPECT_THAT(complaint(scenario, "stage_recompute", "some:4"), HasSubstr("some"));
  EXPECT_THAT(complaint(scenario, "stage_layers", "3x3, 4"), HasSubstr("add up to 13"));
  EXPECT_THAT(complaint(scenario, "stage_layers", "3x"), HasSubstr("how often"));
  EXPECT_THAT(complaint(scenario, "stage_layers", "3x-4"), HasSubstr("how often"));
  EXPECT_THAT(complaint(scenario, "stage_layers", "1x99999,1x99999"), HasSubstr("too long"));
  EXPECT_THAT(complaint(scenario, "stage_nodes", "0x3"), HasSubstr("3 entries"));
  // What else is wrong with a plan is said of the plan, and hinders nobody from typing.
  EXPECT_EQ(complaint(with_field(scenario, "tensor", "5"), "stage_recompute", "full:4"), "taken");
}

TEST(StageLists, StandOnlyWhereThereIsSomethingToTellApart) {
  EXPECT_FALSE(list_applies(small_scenario(), "stage_recompute"));  // one stage
  EXPECT_TRUE(list_applies(staged_scenario(), "stage_recompute"));
  EXPECT_FALSE(list_applies(staged_scenario(), "stage_nodes"));  // one kind of node
  EXPECT_TRUE(list_applies(mixed_example(), "stage_nodes"));
  EXPECT_EQ(list_hint(staged_scenario(), "stage_recompute"), "none in all 4 chunks");
}

TEST(PlanControls, ShowThatChunksRecomputeOnTheirOwn) {
  Scenario scenario = staged_scenario();
  EXPECT_EQ(present(scenario, "recompute"), "none");
  EXPECT_THAT(choices(scenario, "recompute"), Not(Contains(kByChunk)));
  plan_in(scenario).stage_recompute = {Recompute::kFull, Recompute::kFull, Recompute::kNone, Recompute::kNone};
  EXPECT_EQ(present(scenario, "recompute"), kByChunk);
  EXPECT_THAT(choices(scenario, "recompute"), Contains(kByChunk));
  Scenario left = turn(scenario, "recompute", kByChunk, true);
  EXPECT_EQ(plan_in(left).stage_recompute.size(), 4U);
  Scenario turned = turn(scenario, "recompute", "none", true);  // what `recompute` said all along, now for all
  EXPECT_TRUE(plan_in(turned).stage_recompute.empty());
  EXPECT_EQ(present(turned, "recompute"), "none");
}

TEST(PlanControls, OfferAShareWhereOneIsSent) {
  const Scenario scenario = example_scenario();
  EXPECT_EQ(choices(scenario, "top_k_share").size(), 1U);
  EXPECT_THAT(choices(turn(scenario, "compression", "top_k", true), "top_k_share"), Contains("0.05"));
}

TEST(PlanRows, CompareListsInShort) {
  PlanRow a, b;
  a.plan = b.plan = staged_scenario().file.job.plan;
  b.plan.stage_recompute.assign(4, Recompute::kFull);
  for (const DifferenceRow& row : differences({a, b})) {
    if (row.name == "stage_recompute") {
      EXPECT_THAT(row.values, ElementsAre("all alike", "full:4"));
    } else if (row.name == "bucket_bytes") {
      EXPECT_THAT(row.values, ElementsAre("one a layer", "one a layer"));
    }
  }
}

TEST(PlanRows, PayForTheNodesOnWhichTheStagesAre) {
  Scenario scenario = with_cluster(staged_scenario(), "dgx-a100-80gb:2+dgx1-v100-32gb:2");
  const double a100 = scenario.cluster.groups[0].node.price.value(),
               v100 = scenario.cluster.groups[1].node.price.value();
  ASSERT_NE(a100, v100);
  plan_in(scenario).stage_nodes = {1, 1, 1, 1};  // eight ranks on one V100 node
  EXPECT_DOUBLE_EQ(dollars_per_iteration(plan_in(scenario), scenario.cluster, 3600), v100);
  plan_in(scenario).stage_nodes.clear();
  EXPECT_DOUBLE_EQ(dollars_per_iteration(plan_in(scenario), scenario.cluster, 3600), a100);
}

TEST(Counts, AreTypedWithSeparatorsAndUnits) {
  EXPECT_EQ(parse_count("1536"), 1536);
  EXPECT_EQ(parse_count("2,048"), 2048);
  EXPECT_EQ(parse_count(" 300 B "), 300'000'000'000);
  EXPECT_EQ(parse_count("300e9"), 300'000'000'000);
  EXPECT_EQ(parse_count("1.5 trillion"), 1'500'000'000'000);
  EXPECT_EQ(parse_count("2k"), 2000);
  for (const char* wrong : {"", "sixteen", "16x", "-1", "1.5", "inf", "nan", "0x10", "1e300", "3 parsecs", "."}) {
    EXPECT_EQ(parse_count(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(count_text(300'000'000'000), "300,000,000,000");
  EXPECT_EQ(parse_count(count_text(1234567)), 1234567);
}

}  // namespace
}  // namespace trivium::gui
