#include "planner/space/constraints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "hardware_profiles/load.h"
#include "planner/search/search.h"
#include "planner/space/space.h"
#include "planner/space/usual_bounds.h"
#include "program/plan/differences.h"
#include "program/plan/fields.h"
#include "program/plan/job_json.h"
#include "tests/planner/problems.h"

namespace trivium::planner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Kind = Constraint::Kind;

std::string message_of(Kind kind, const std::string& text) {
  try {
    parse_constraint(kind, text);
  } catch (const base::Failure& failure) {
    EXPECT_EQ(failure.error().kind, base::ErrorKind::kUsage);
    return failure.error().message;
  }
  return "no error";
}

TEST(Constraint, BoundsNumbers) {
  program::Plan plan;
  plan.pipeline = 8;
  EXPECT_TRUE(parse_constraint(Kind::kMax, "pipeline=8").allows(plan));
  EXPECT_FALSE(parse_constraint(Kind::kMax, "pipeline=7").allows(plan));
  EXPECT_TRUE(parse_constraint(Kind::kMin, "pipeline=8").allows(plan));
  EXPECT_FALSE(parse_constraint(Kind::kMin, "pipeline=9").allows(plan));
}

TEST(Constraint, ForbidsFeaturesGroupsAndValues) {
  program::Plan plan;
  plan.overlap = {false, false, false, false};
  for (const char* text : {"offload", "overlap", "context", "sequence-parallel", "recompute", "zero_stage"}) {
    EXPECT_TRUE(parse_constraint(Kind::kForbid, text).allows(plan)) << text;
  }
  plan.offload.gradients = program::Storage::kHost;
  plan.overlap.tensor = true;
  plan.context = 2;
  plan.sequence_parallel = true;
  plan.recompute = program::Recompute::kSelective;
  plan.zero_stage = 1;
  for (const char* text : {"offload", "overlap", "context", "sequence-parallel", "recompute", "zero_stage"}) {
    EXPECT_FALSE(parse_constraint(Kind::kForbid, text).allows(plan)) << text;
  }
  EXPECT_TRUE(parse_constraint(Kind::kForbid, "recompute=full").allows(plan));
  EXPECT_FALSE(parse_constraint(Kind::kForbid, "recompute=selective").allows(plan));
  EXPECT_TRUE(parse_constraint(Kind::kForbid, "offload.gradients=disk").allows(plan));
}

TEST(Constraint, RefusesWhatItCannotMean) {
  EXPECT_THAT(message_of(Kind::kMax, "pipelin=8"), HasSubstr("did you mean \"pipeline\"?"));
  EXPECT_THAT(message_of(Kind::kMax, "pipeline"), HasSubstr("write FIELD=VALUE"));
  EXPECT_THAT(message_of(Kind::kMax, "recompute=full"), HasSubstr("recompute is not a number"));
  EXPECT_THAT(message_of(Kind::kMin, "tensor=many"), HasSubstr("--min \"tensor=many\": --tensor"));
  EXPECT_THAT(message_of(Kind::kForbid, "recompute=some"), HasSubstr("\"some\""));
  EXPECT_THAT(message_of(Kind::kForbid, "precision"), HasSubstr("forbid one of its values, like precision=bf16"));
  EXPECT_THAT(message_of(Kind::kForbid, "offload=host"), HasSubstr("group of fields; name one"));
}

TEST(Constraint, LeavesOnlyAllowedPlansInTheSpace) {
  SearchRequest request = small_problem();
  const std::size_t all = enumerate(request).size();
  request.constraints = {parse_constraint(Kind::kMax, "tensor=2"), parse_constraint(Kind::kForbid, "recompute=full"),
                         parse_constraint(Kind::kMin, "data=2")};
  const std::int64_t forbidden = count_forbidden(request);
  const std::vector<Member> left = enumerate(request);
  EXPECT_EQ(left.size() + static_cast<std::size_t>(forbidden), all);
  ASSERT_FALSE(left.empty());
  for (const auto& [plan, balanced] : left) {
    EXPECT_LE(plan.tensor, 2);
    EXPECT_GE(plan.data, 2);
    EXPECT_NE(plan.recompute, program::Recompute::kFull);
  }
  const SearchResult result = search(request, 2, {}, {});
  EXPECT_EQ(result.plans_in_space, static_cast<std::int64_t>(left.size()));
  EXPECT_EQ(result.plans_forbidden, forbidden);
}

TEST(Constraint, ThatNoPlanSatisfiesLeavesAnEmptySpace) {
  SearchRequest request = small_problem();
  request.constraints = {parse_constraint(Kind::kMin, "pipeline=5")};  // four layers
  const SearchResult result = search(request, 2, {}, {});
  EXPECT_EQ(result.plans_in_space, 0);
  EXPECT_GT(result.plans_forbidden, 0);
  EXPECT_TRUE(result.best.empty());
}

TEST(Constraint, SearchesLeaveOutWhatIsNotAllowed) {
  const auto closed = closed_unless_allowed({}, {});
  program::Plan plan;
  EXPECT_EQ(broken_by(closed, plan), nullptr);
  plan.offload.activations = program::Storage::kHost;
  EXPECT_EQ(broken_by(closed, plan), nullptr);
  plan = {};
  plan.overlap.tensor = true;
  ASSERT_NE(broken_by(closed, plan), nullptr);
  EXPECT_EQ(broken_by(closed, plan)->lifted(), "with --allow overlap.tensor");
  EXPECT_EQ(broken_by(closed_unless_allowed({"overlap.tensor"}, {}), plan), nullptr);
  EXPECT_EQ(broken_by(closed_unless_allowed({}, {"overlap.tensor"}), plan), nullptr);
  plan = {};
  plan.tensor = 4, plan.expert_tensor = 1;
  EXPECT_EQ(broken_by(closed, plan), nullptr);
  plan.expert_tensor = 2;
  ASSERT_NE(broken_by(closed, plan), nullptr);
  EXPECT_EQ(broken_by(closed, plan)->lifted(), "with --allow expert_tensor");
  EXPECT_EQ(broken_by(closed_unless_allowed({}, {"expert_tensor"}), plan), nullptr);
  plan = {};
  plan.compression = program::Compression::kFp16;
  EXPECT_NE(broken_by(closed, plan), nullptr);
  EXPECT_THROW(closed_unless_allowed({"pipeline"}, {}), base::Failure);
}

// Some trainers can overlap exchanges with other passes: with their stacks, or where it is requested.
TEST(Constraint, SearchesOverlapExpertsForStacksThatCan) {
  const auto cluster = hardware::load_cluster("dgx-a100-80gb:2");
  program::Plan plan;
  plan.overlap.expert = true;
  for (const char* stack : {"megatron-core", "megatron-bridge"}) {
    EXPECT_EQ(broken_by(usual_bounds(cluster, stack, {}, {}), plan), nullptr) << stack;
  }
  for (const char* stack : {"trivium", "torchtitan-fsdp2", "megatron-core-0.8"}) {
    const auto usual = usual_bounds(cluster, stack, {}, {});
    ASSERT_NE(broken_by(usual, plan), nullptr) << stack;
    EXPECT_EQ(broken_by(usual, plan)->lifted(), "with --allow overlap.expert");
    EXPECT_EQ(broken_by(usual_bounds(cluster, stack, {"overlap.expert"}, {}), plan), nullptr) << stack;
  }
}

TEST(Constraint, SearchesLeaveOutOffloadOnUnlikeNodesAlone) {
  const auto alike = hardware::load_cluster("dgx-a100-80gb:2");
  const auto heterogeneous = hardware::load_cluster("dgx-a100-80gb:1+dgx1-v100-32gb:1");
  program::Plan plan;
  plan.offload.optimizer = program::Storage::kHost;
  EXPECT_EQ(broken_by(usual_bounds(alike, "trivium", {}, {}), plan), nullptr);
  const auto usual = usual_bounds(heterogeneous, "trivium", {}, {});
  ASSERT_NE(broken_by(usual, plan), nullptr);
  EXPECT_EQ(broken_by(usual, plan)->lifted(), "with --allow offload");
  EXPECT_EQ(broken_by(usual_bounds(heterogeneous, "trivium", {"offload"}, {}), plan), nullptr);
  EXPECT_EQ(broken_by(usual_bounds(heterogeneous, "trivium", {}, {"offload.optimizer"}), plan), nullptr);
  plan.overlap.tensor = true;
  EXPECT_NE(broken_by(usual_bounds(alike, "trivium", {}, {}), plan), nullptr);
}

TEST(Constraint, TensorCollectivesBesideProductsAreOpenWhereTheTrainerHasKernelsForThem) {
  const auto cluster = hardware::load_cluster("dgx-h100-80gb:2");
  program::Plan plan;
  plan.overlap.tensor = true;
  for (const char* stack : {"megatron-nemo2", "megatron-bridge", "torchtitan-fsdp2"}) {
    ASSERT_NE(program::find_stack(stack), nullptr) << stack;
    EXPECT_EQ(broken_by(usual_bounds(cluster, stack, {}, {}), plan), nullptr) << stack;
  }
  EXPECT_NE(broken_by(usual_bounds(cluster, "megatron", {}, {}), plan), nullptr);
  plan.compression = program::Compression::kFp16;
  EXPECT_NE(broken_by(usual_bounds(cluster, "megatron-nemo2", {}, {}), plan), nullptr);
}

TEST(PlanFields, TextsAreWhatSetFieldTakes) {
  program::Plan plan;
  plan.tensor = 4;
  plan.stage_layers = {1, 2, 1};
  plan.stage_recompute = {program::Recompute::kFull, program::Recompute::kNone};
  plan.recompute_modules = {program::Module::kMlp, program::Module::kLayerNorm};
  plan.overlap.tensor = true;
  plan.offload.optimizer = program::Storage::kHost;
  plan.schedule = program::Schedule::kZeroBubble;
  plan.placement = "data-tensor-context-pipeline";
  program::Plan copy;
  program::Training training;
  for (const std::string& field : program::plan_fields()) {
    ASSERT_FALSE(text_of(program::Plan{}, field).empty() && field.find("stage_") == std::string::npos &&
                 field != "replica_micro_batch" && field != "recompute_modules")
        << field;
    if (!text_of(plan, field).empty()) program::set_field(copy, training, field, text_of(plan, field));
  }
  EXPECT_TRUE(differences(plan, copy).empty());
  EXPECT_THAT(differences(program::Plan{}, plan).front(), (program::Difference{"tensor", "1", "4"}));
}

}  // namespace
}  // namespace trivium::planner
