// The table of a plan's fields against plans, and docs/reference/plan-fields.md against the table.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string_view>

#include "program/plan/differences.h"
#include "program/plan/fields.h"
#include "program/plan/job_json.h"
#include "tests/golden.h"

namespace trivium::program {
namespace {

Plan with(const std::string& field, const std::string& text) {
  Plan plan;
  Training training;
  set_field(plan, training, field, text);
  return plan;
}

TEST(PlanFields, AreNamedOnceAndDescribed) {
  std::set<std::string> names, titles;
  for (const PlanField& field : plan_field_table()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_TRUE(titles.insert(field.title).second) << field.title;
    EXPECT_FALSE(std::string_view(field.help).empty()) << field.name;
    EXPECT_EQ(std::string_view(field.values).empty(), field.kind == FieldKind::kFlag) << field.name;
    EXPECT_EQ(find_plan_field(field.name), &field);
  }
  EXPECT_EQ(find_plan_field("tenser"), nullptr);
  EXPECT_EQ(text_of(Plan{}, "tenser"), "");
}

TEST(PlanFields, TakeTheirNamesAndLimitsAndWriteThemBack) {
  for (const PlanField& field : plan_field_table()) {
    if (field.names != nullptr) {
      for (const std::string& name : field.names()) EXPECT_EQ(text_of(with(field.name, name), field.name), name);
    }
    if (!field.is_number()) continue;
    for (const std::int64_t value : {field.least, field.most}) {
      EXPECT_EQ(text_of(with(field.name, std::to_string(value)), field.name), std::to_string(value)) << field.name;
    }
    for (const std::int64_t value : {field.least - 1, field.most + 1}) {
      EXPECT_ANY_THROW(with(field.name, std::to_string(value))) << field.name << " " << value;
    }
  }
}

// What is not used is what a plan has where nobody asks for it.
TEST(PlanFields, NeutralValuesAreThoseOfAPlanThatUsesNothing) {
  for (const PlanField& field : plan_field_table()) {
    if (field.unused == nullptr || std::string_view(field.name) == "overlap.pipeline") continue;  // which is on
    EXPECT_EQ(text_of(Plan{}, field.name), field.unused) << field.name;
  }
}

TEST(PlanFields, TellPlansApart) {
  for (const PlanField& field : plan_field_table()) {
    const std::string old = text_of(Plan{}, field.name);
    const std::string value = field.kind == FieldKind::kFlag     ? old == "true" ? "false" : "true"
                              : field.kind == FieldKind::kShare  ? "0.5"
                              : field.kind == FieldKind::kCounts ? "3,2"
                              : field.kind == FieldKind::kOrder  ? "data-tensor-context-pipeline"
                              : field.names != nullptr
                                  ? field.names().back() == old ? field.names().front() : field.names().back()
                                  : std::to_string(field.least + 2);
    EXPECT_EQ(differences(Plan{}, with(field.name, value)), (std::vector<Difference>{{field.name, old, value}}));
  }
}

TEST(Settle, VirtualStagesAndInterleavingNeedEachOther) {
  Plan plan;
  plan.pipeline = 4;
  plan.virtual_stages = 2;
  plan.stage_layers = {1, 1, 1, 1};
  settle(plan, "virtual_stages");
  EXPECT_EQ(plan.schedule, Schedule::kInterleaved);
  EXPECT_TRUE(plan.stage_layers.empty());
  plan.schedule = Schedule::kZeroBubble;
  settle(plan, "schedule");
  EXPECT_EQ(plan.virtual_stages, 1);
  plan.schedule = Schedule::kInterleaved;
  settle(plan, "schedule");
  EXPECT_EQ(plan.virtual_stages, 2);
  plan.pipeline = 1;
  settle(plan, "pipeline");
  EXPECT_EQ(plan.virtual_stages, 1);
  EXPECT_EQ(plan.schedule, Schedule::k1f1b);
}

TEST(Settle, KeepsWhatOtherFieldsDoNotAskFor) {
  Plan plan;
  plan.tensor = 2;
  plan.data = 4;
  plan.sequence_parallel = true;
  plan.zero_stage = 3;
  plan.shard_group = 2;
  plan.stage_recompute = {Recompute::kFull};
  settle(plan, "tensor");
  EXPECT_TRUE(plan.sequence_parallel);
  EXPECT_EQ(plan.shard_group, 2);
  EXPECT_EQ(plan.stage_recompute.size(), 1U);
  plan.data = 2;
  settle(plan, "data");
  EXPECT_EQ(plan.shard_group, 0);
  settle(plan, "recompute");
  EXPECT_TRUE(plan.stage_recompute.empty());
}

std::string values_of(const PlanField& field) {
  if (field.kind == FieldKind::kFlag) return "true, false";
  if (field.kind == FieldKind::kOrder) return "the four dimensions in any order";
  if (field.kind == FieldKind::kShare) return "above 0, at most 1";
  if (std::string_view(field.name) == "stack") return "one of the [stacks](stacks.md)";
  if (field.names != nullptr) {
    return fmt::format("{}`{}`", field.is_list() ? "a list of " : "", fmt::join(field.names(), "`, `"));
  }
  const bool bounded = field.most < 1 << 24;
  const std::string range =
      bounded ? fmt::format("{} to {}", field.least, field.most) : fmt::format("{} or more", field.least);
  return field.is_list() ? "a list of numbers, each " + range : range;
}

std::string page() {
  std::string text =
      "# Fields of a plan\n\n"
      "Every field of a plan, as it stands in plan files (`plan` of `trivium.plan/1`; a dot is a member of\n"
      "an object), in `--fix`, `--min`, `--max` and `--forbid` of `trivium plan`, and as an option of every\n"
      "command that takes a plan (`offload.optimizer` is `--offload-optimizer`). The table in\n"
      "`program/plan/fields.cpp` is the only place where a field is described; this page is written from it\n"
      "(`tests/program/plan/plan_fields_test.cpp`).\n";
  for (int g = 0; g < 4; ++g) {
    const auto group = static_cast<FieldGroup>(g);
    text += fmt::format("\n## {}\n\n| field | values | default | not used | meaning |\n|---|---|---|---|---|\n",
                        name_of(group));
    for (const PlanField& field : plan_field_table()) {
      if (field.group != group) continue;
      const std::string usual = field.text(Plan{});
      const std::string unused = field.unused == nullptr                  ? ""
                                 : std::string_view(field.unused).empty() ? "empty"
                                                                          : field.unused;
      text += fmt::format("| `{}` | {} | {} | {} | {} |\n", field.name, values_of(field),
                          usual.empty() ? "empty" : usual, unused, field.help);
    }
  }
  text += "\n## Training\n\n| field | values | default | meaning |\n|---|---|---|---|\n";
  for (const TrainingField& field : training_field_table()) {
    std::string values = field.values;
    std::replace(values.begin(), values.end(), '|', '/');
    text += fmt::format("| `{}` | {} | {} | {} |\n", field.name, values, field.json(Training{}).dump(), field.help);
  }
  return text;
}

TEST(PlanFields, AreDocumentedAsTheTableSays) {
  expect_golden(std::filesystem::path(TRIVIUM_SOURCE_DIR) / "docs/reference/plan-fields.md", page());
}

}  // namespace
}  // namespace trivium::program
