// What trainers usually use and a search for one leaves out.
#include "planner/space/usual_values.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/space/trainers.h"
#include "planner/space/usual_bounds.h"
#include "program/plan/job_json.h"
#include "program/plan/stack.h"

namespace trivium::planner {
namespace {

SearchRequest request_for(const char* trainer, const char* model, const std::vector<std::string>& allowed = {},
                          const std::set<std::string>& fixed = {}) {
  SearchRequest request;
  request.job.model = models::load_model(model);
  request.cluster = hardware::load_cluster("dgx-h100-80gb:16");
  request.job.training.sequence = 4096;
  request.job.training.global_batch = 512;
  const TrainerSpace& space = *find_trainer_space(trainer);
  request.job.plan.stack = space.stack;
  request.fixed = fixed;
  request.constraints = usual_bounds(request.cluster, request.job.plan.stack, allowed, fixed);
  return for_trainer(std::move(request), space);
}

std::string fields_of_missing(const SearchRequest& request) {
  std::string text;
  for (const Missing& one : missing_values(request)) text += (text.empty() ? "" : " ") + one.field;
  return text;
}

TEST(UsualValues, AreMissingWhereATrainersRuleExcludesThem) {
  EXPECT_EQ(text_of(missing_values(request_for("torchtitan", "llama3-70b"))),
            "missing: recompute selective (its configurations; none or full; selective keeps a list of its own)");
}

TEST(UsualValues, AreMissingWhereAUsualBoundExcludesThem) {
  EXPECT_EQ(text_of(missing_values(request_for("megatron-bridge", "deepseek-v3"))),
            "missing: recompute_modules moe_act (23 of 59 published runs; searched with --allow recompute_modules)");
  EXPECT_EQ(fields_of_missing(request_for("megatron-bridge", "deepseek-v3", {"recompute_modules"})), "");
}

// Nothing is said where the space has all of them, where the user chose, or without a trainer.
TEST(UsualValues, AreNotMissingWhereTheyAreSearched) {
  EXPECT_EQ(fields_of_missing(request_for("megatron", "llama3-70b")), "");
  EXPECT_EQ(fields_of_missing(request_for("megatron-bridge", "llama3-70b")), "");
  EXPECT_EQ(fields_of_missing(request_for("fsdp2", "llama3-70b")), "");
  EXPECT_EQ(fields_of_missing(request_for("deepspeed", "llama3-70b")), "");
  EXPECT_EQ(fields_of_missing(request_for("torchtitan", "mixtral-8x7b")), "recompute");
  EXPECT_EQ(fields_of_missing(request_for("torchtitan", "llama3-70b", {}, {"recompute"})), "");
  SearchRequest alone = request_for("torchtitan", "llama3-70b");
  alone.trainer = nullptr;
  EXPECT_EQ(fields_of_missing(alone), "");
}

// Every stack that can run passes in pairs has exchanges overlapped in its space without --allow.
TEST(UsualValues, ExchangesOverlapWithoutBeingAllowedWhereTheStackDoesIt) {
  for (const program::StackTraits& stack : program::all_stacks()) {
    const auto bounds = usual_bounds(hardware::load_cluster("dgx-h100-80gb:16"), stack.name, {}, {});
    const bool closed =
        std::ranges::any_of(bounds, [](const Constraint& bound) { return bound.field == "overlap.expert"; });
    EXPECT_EQ(closed, !stack.pairs_passes) << stack.name;
  }
}

TEST(UsualValues, NameTrainersFieldsAndValues) {
  for (const UsualValue& usual : usual_values()) {
    EXPECT_NE(find_trainer_space(usual.trainer), nullptr) << usual.trainer;
    program::Plan plan;
    program::Training training;
    for (const auto& [field, value] : usual.values) {
      EXPECT_NO_THROW(program::set_field(plan, training, std::string(field), std::string(value))) << field;
    }
  }
}

}  // namespace
}  // namespace trivium::planner
