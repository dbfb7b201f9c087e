// Names of fields never reach the eye of an engineer.
#include "gui/model/display_name.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "gui/model/evaluation.h"
#include "gui/model/plan_controls.h"
#include "gui/model/plan_rows.h"
#include "gui/model/sensitivity.h"
#include "program/plan/job_json.h"
#include "tests/gui/scenarios.h"

namespace trivium::gui {
namespace {

bool has_raw_name(const std::string& text) { return std::regex_search(text, std::regex("[a-z]+[_.][a-z]+")); }

TEST(Spoken, PutsFieldsAndValuesInWords) {
  EXPECT_EQ(display_name("micro_batch 1 to 2"), "micro-batch 1 to 2");
  EXPECT_EQ(display_name("zero_stage 1 to 2"), "ZeRO stage 1 to 2");
  EXPECT_EQ(display_name("overlap.parameter_gather off."), "overlap gathers off.");
  EXPECT_EQ(display_name("context_method ring to all_to_all"), "context method ring to all to all");
  EXPECT_EQ(display_name("global_batch 3 is not a multiple of data 2 x micro_batch 1 = 2"),
            "global batch 3 is not a multiple of data 2 x micro-batch 1 = 2");
  EXPECT_EQ(display_name("tensor 8 to 4, data 16 to 32"), "tensor 8 to 4, data 16 to 32");
}

TEST(Spoken, LeavesNamesOfOthersAlone) {
  for (const char* text : {"model my_net has 12 layers", "\"micro_batch\" is unknown", "runs/micro_batch.json",
                           "gpt-micro_batch", "zero_stage_first", "97.1 GiB of 80.0 GiB", ""}) {
    EXPECT_EQ(display_name(text), text);
  }
}

TEST(Spoken, EveryFieldOfAPlanAndEveryChoiceReadsAsWords) {
  const Scenario scenario = staged_scenario();
  for (const PlanControl& plan_control : plan_controls()) {
    for (const std::string& choice : choices(scenario, plan_control.field)) {
      EXPECT_FALSE(has_raw_name(shown(plan_control.field, choice))) << plan_control.field << " " << choice;
    }
  }
  EXPECT_EQ(shown("sequence_parallel", "true"), "on");
  EXPECT_EQ(shown("schedule", "zero_bubble"), "zero bubble");
  PlanRow row;
  row.plan = scenario.file.job.plan;
  for (const DifferenceRow& difference : differences({row, row})) {
    EXPECT_FALSE(has_raw_name(words_of(difference.name))) << difference.name;
    for (const std::string& value : difference.values) EXPECT_FALSE(has_raw_name(value)) << difference.name;
  }
}

TEST(Spoken, WordsAreReadBack) {
  for (const std::string& field : program::plan_fields()) {
    EXPECT_EQ(field_called(words_of(field)), field);
    EXPECT_EQ(field_called(field), field);
    EXPECT_FALSE(has_raw_name(words_of(field))) << field;
  }
  EXPECT_EQ(field_called("zero STAGE"), "zero_stage");
  EXPECT_EQ(field_called("tensr"), "tensr");
}

TEST(Spoken, GroupsAndModulesAreWords) {
  EXPECT_EQ(display_name("gradients, group expert_data"), "gradients, group expert data");
  EXPECT_EQ(display_name("recompute=selective(core_attn,moe_act)"), "recompute=selective(core attn,moe act)");
}

TEST(Spoken, SoDoExplanationsAndRefusals) {
  Scenario scenario = staged_scenario();
  const Insight found = insight(evaluate(scenario, Depth::kFull), {});
  ASSERT_FALSE(found.sentences.empty());
  for (const std::string& sentence : found.sentences) EXPECT_FALSE(has_raw_name(sentence)) << sentence;
  bool switches = false;  // what had raw names is among them
  for (const Sensitivity& plan : found.plans) {
    EXPECT_FALSE(has_raw_name(plan.change)) << plan.change;
    EXPECT_FALSE(has_raw_name(plan.refusal)) << plan.refusal;
    switches = switches || plan.change.starts_with("micro-batch ");
  }
  EXPECT_TRUE(switches);
  scenario.file.job.plan.zero_stage = 7;
  EXPECT_EQ(evaluate(scenario, Depth::kQuick).refusal, "ZeRO stage is 7; it must be 0 to 3");
}

}  // namespace
}  // namespace trivium::gui
