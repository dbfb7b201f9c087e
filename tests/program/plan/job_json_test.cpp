#include "program/plan/job_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace trivium::program {
namespace {

using nlohmann::json;

/// The one-line error of reading, or "no error".
template <class Read>
std::string error_of(Read read) {
  try {
    read();
  } catch (const base::Failure& failure) {
    EXPECT_EQ(failure.error().kind, base::ErrorKind::kInput);
    return failure.error().message;
  }
  return "no error";
}

std::string plan_error(const json& value) {
  return error_of([&] { plan_from_json(base::JsonReader(value, "plan.json", "/plan")); });
}

std::string training_error(const json& value) {
  return error_of([&] { training_from_json(base::JsonReader(value, "plan.json", "/training")); });
}

// Every member differs from its default, so that one forgotten in reading or writing shows.
const json& full_plan() {
  static const json kPlan = {
      {"tensor", 2},
      {"sequence_parallel", true},
      {"context", 3},
      {"context_method", "all_to_all"},
      {"pipeline", 4},
      {"virtual_stages", 5},
      {"schedule", "interleaved"},
      {"stage_layers", {3, 2, 1}},
      {"data", 6},
      {"zero_stage", 1},
      {"shard_group", 7},
      {"expert", 8},
      {"expert_tensor", 1},
      {"micro_batch", 9},
      {"recompute", "full"},
      {"stage_recompute", {"none", "selective", "full"}},
      {"precision", "fp16"},
      {"fp8", "mxfp8"},
      {"reduce_dtype", "bf16"},
      {"moment_dtype", "bf16"},
      {"attention", "flash"},
      {"overlap",
       {{"gradient_reduction", true},
        {"parameter_gather", true},
        {"pipeline", false},
        {"tensor", true},
        {"expert", true}}},
      {"bucket_bytes", 1048576},
      {"offload", {{"optimizer", "host"}, {"gradients", "disk"}, {"parameters", "host"}, {"activations", "disk"}}},
      {"scatter_gather", "off"},
      {"compression", "top_k"},
      {"top_k_share", 0.25},
      {"placement", "data-tensor-context-pipeline"},
      {"stage_nodes", {0, 1, 1, 0}},
      {"stack", "megatron"}};
  return kPlan;
}

const json& full_training() {
  static const json kTraining = {{"sequence", 2048},
                                 {"global_batch", 1536},
                                 {"total_tokens", 300000000000},
                                 {"dropout", 0.125},
                                 {"seed", 99},
                                 {"learning_rate", 0.5},
                                 {"min_learning_rate", 0.25},
                                 {"warmup_steps", 11},
                                 {"decay_steps", 12},
                                 {"beta1", 0.75},
                                 {"beta2", 0.875},
                                 {"epsilon", 0.0625},
                                 {"weight_decay", 0.375},
                                 {"clip_norm", 2.5},
                                 {"loss_scale", 1024.0},
                                 {"loss_scale_interval", 77},
                                 {"loss_scale_backoff", 0.25},
                                 {"optimizer", "muon"},
                                 {"muon_momentum", 0.5},
                                 {"muon_iterations", 6},
                                 {"lora_rank", 16},
                                 {"lora_alpha", 32.0},
                                 {"lora_targets", {"qkv", "fc2"}},
                                 {"document_lengths", {128, 512}},
                                 {"document_weights", {3, 1}},
                                 {"expert_load", {5, 0, 1}},
                                 {"expert_zipf", 0.5}};
  return kTraining;
}

TEST(PlanJson, EveryFieldSurvivesTheRoundTrip) {
  const json defaults = to_json(Plan{});
  ASSERT_EQ(full_plan().size(), defaults.size());
  for (const auto& [key, value] : full_plan().items()) EXPECT_NE(value, defaults.at(key)) << key;
  EXPECT_EQ(to_json(plan_from_json(base::JsonReader(full_plan(), "plan.json"))), full_plan());
}

TEST(PlanJson, FieldsArriveWhereTheyBelong) {
  const Plan plan = plan_from_json(base::JsonReader(full_plan(), "plan.json"));
  EXPECT_EQ(plan.tensor, 2);
  EXPECT_EQ(plan.pipeline, 4);
  EXPECT_EQ(plan.schedule, Schedule::kInterleaved);
  EXPECT_EQ(plan.stage_layers, (std::vector<int>{3, 2, 1}));
  EXPECT_EQ(plan.stage_recompute, (std::vector<Recompute>{Recompute::kNone, Recompute::kSelective, Recompute::kFull}));
  EXPECT_EQ(plan.precision, DType::kFp16);
  EXPECT_EQ(plan.offload.gradients, Storage::kDisk);
  EXPECT_FALSE(plan.overlap.pipeline);
}

TEST(PlanJson, MissingMembersKeepTheirDefaults) {
  EXPECT_EQ(to_json(plan_from_json(base::JsonReader(json::object(), "plan.json"))), to_json(Plan{}));
  const json partial = {{"overlap", {{"tensor", true}}}};
  EXPECT_TRUE(plan_from_json(base::JsonReader(partial, "plan.json")).overlap.pipeline);
}

TEST(PlanJson, ErrorsNamePlaceReasonAndRemedy) {
  EXPECT_EQ(plan_error({{"tensr", 2}}), "plan.json#/plan/tensr: unknown member \"tensr\"; did you mean \"tensor\"?");
  EXPECT_EQ(plan_error({{"overlap", {{"pipelin", true}}}}),
            "plan.json#/plan/overlap/pipelin: unknown member \"pipelin\"; did you mean \"pipeline\"?");
  EXPECT_EQ(plan_error({{"schedule", "1fb1"}}),
            "plan.json#/plan/schedule: unknown value \"1fb1\"; did you mean \"1f1b\"?");
  EXPECT_EQ(plan_error({{"stack", "megatorn"}}),
            "plan.json#/plan/stack: unknown value \"megatorn\"; did you mean \"megatron\"?");
  EXPECT_EQ(plan_error({{"tensor", 0}}), "plan.json#/plan/tensor: must be from 1 to 16777216, not 0");
  EXPECT_EQ(plan_error({{"tensor", "two"}}), "plan.json#/plan/tensor: expected a whole number, found text \"two\"");
  EXPECT_EQ(plan_error({{"precision", "int32"}}),
            "plan.json#/plan/precision: unknown value \"int32\"; known: fp64, fp32, bf16, fp16");
  EXPECT_EQ(plan_error({{"stage_layers", {4, -1}}}),
            "plan.json#/plan/stage_layers/1: must be from 0 to 16777216, not -1");
  EXPECT_EQ(plan_error({{"sequence_parallel", 1}}),
            "plan.json#/plan/sequence_parallel: expected true or false, found a number");
  EXPECT_EQ(plan_error(json::array()), "plan.json#/plan: expected an object, found an array");
}

TEST(TrainingJson, EveryFieldSurvivesTheRoundTrip) {
  const json defaults = to_json(Training{});
  ASSERT_EQ(full_training().size(), training_fields().size());
  for (const auto& [key, value] : full_training().items()) EXPECT_NE(value, defaults.value(key, json())) << key;
  EXPECT_EQ(to_json(training_from_json(base::JsonReader(full_training(), "plan.json"))), full_training());
}

TEST(TrainingJson, DefaultsSurviveTheRoundTripToo) {
  const json defaults = to_json(Training{});
  EXPECT_EQ(to_json(training_from_json(base::JsonReader(defaults, "plan.json"))), defaults);
}

TEST(TrainingJson, AdaptersAreWrittenWhereTheyAreGiven) {
  EXPECT_FALSE(to_json(Training{}).contains("lora_rank"));
  Training training;
  training.lora = {.rank = 8, .qkv = false};
  const json written = to_json(training);
  EXPECT_EQ(written.at("lora_targets"), json({"projection", "fc1", "fc2"}));
  EXPECT_EQ(training_from_json(base::JsonReader(written, "plan.json")).lora, training.lora);
}

TEST(TrainingJson, ErrorsNamePlaceReasonAndRemedy) {
  EXPECT_EQ(training_error({{"globl_batch", 2}}),
            "plan.json#/training/globl_batch: unknown member \"globl_batch\"; did you mean \"global_batch\"?");
  EXPECT_EQ(training_error({{"dropout", 1.0}}), "plan.json#/training/dropout: is a probability; give a number below 1");
  EXPECT_EQ(training_error({{"dropout", -0.1}}), "plan.json#/training/dropout: must not be negative");
  EXPECT_EQ(training_error({{"beta2", 1}}), "plan.json#/training/beta2: must be below 1");
  EXPECT_EQ(training_error({{"epsilon", 0}}), "plan.json#/training/epsilon: must be above zero");
  EXPECT_EQ(training_error({{"lora_rank", -1}}), "plan.json#/training/lora_rank: must be from 0 to 4096, not -1");
  EXPECT_EQ(training_error({{"lora_targets", {"qkv", "fc3"}}}),
            "plan.json#/training/lora_targets/1: unknown value \"fc3\"; did you mean \"fc1\"?");
  EXPECT_EQ(training_error({{"lora_targets", json::array()}}),
            "plan.json#/training/lora_targets: adapters need a target; give qkv, projection, fc1, fc2 or several of "
            "them");
  EXPECT_EQ(training_error({{"sequence", 0.5}}),
            "plan.json#/training/sequence: expected a whole number from 0 to 16777216, found 0.5");
}

}  // namespace
}  // namespace trivium::program
