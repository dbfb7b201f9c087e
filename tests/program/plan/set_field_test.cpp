// Fields as options of the command line.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "program/plan/job_json.h"

namespace trivium::program {
namespace {

using nlohmann::json;

struct Case {
  const char* field;
  const char* text;
  json value;
};

const std::vector<Case>& plan_cases() {
  static const std::vector<Case> kCases{{"tensor", "8", 8},
                                        {"sequence_parallel", "true", true},
                                        {"context", "2", 2},
                                        {"context_method", "all_to_all", "all_to_all"},
                                        {"context_heads", "2", 2},
                                        {"pipeline", "16", 16},
                                        {"virtual_stages", "2", 2},
                                        {"schedule", "gpipe", "gpipe"},
                                        {"stage_layers", "4,4,5", {4, 4, 5}},
                                        {"data", "3", 3},
                                        {"zero_stage", "1", 1},
                                        {"shard_group", "4", 4},
                                        {"expert", "2", 2},
                                        {"expert_tensor", "1", 1},
                                        {"expert_dispatch", "deepep", "deepep"},
                                        {"micro_batch", "4", 4},
                                        {"replica_micro_batch", "4,4,1", {4, 4, 1}},
                                        {"recompute", "full", "full"},
                                        {"stage_recompute", "full,none", {"full", "none"}},
                                        {"recompute_layers", "2", 2},
                                        {"recompute_group", "4", 4},
                                        {"recompute_modules", "mlp,moe_act", {"mlp", "moe_act"}},
                                        {"precision", "fp64", "fp64"},
                                        {"fp8", "current", "current"},
                                        {"fp8_parameter_gather", "on", "on"},
                                        {"reduce_dtype", "bf16", "bf16"},
                                        {"moment_dtype", "bf16", "bf16"},
                                        {"attention", "flash", "flash"},
                                        {"overlap.gradient_reduction", "true", true},
                                        {"overlap.parameter_gather", "true", true},
                                        {"overlap.pipeline", "false", false},
                                        {"overlap.tensor", "true", true},
                                        {"overlap.expert", "true", true},
                                        {"bucket_bytes", "1000", 1000},
                                        {"offload.optimizer", "host", "host"},
                                        {"offload.gradients", "disk", "disk"},
                                        {"offload.parameters", "host", "host"},
                                        {"offload.activations", "host", "host"},
                                        {"scatter_gather", "on", "on"},
                                        {"compression", "fp16", "fp16"},
                                        {"top_k_share", "0.25", 0.25},
                                        {"placement", "data-tensor-context-pipeline", "data-tensor-context-pipeline"},
                                        {"stage_nodes", "0,0,1", {0, 0, 1}},
                                        {"stack", "fsdp", "fsdp"}};
  return kCases;
}

const std::vector<Case>& training_cases() {
  static const std::vector<Case> kCases{{"sequence", "2048", 2048},
                                        {"global_batch", "1536", 1536},
                                        {"total_tokens", "1000000", 1000000},
                                        {"dropout", "0.1", 0.1},
                                        {"seed", "7", 7},
                                        {"learning_rate", "6e-5", 6e-5},
                                        {"min_learning_rate", "0", 0.0},
                                        {"warmup_steps", "20", 20},
                                        {"decay_steps", "30", 30},
                                        {"beta1", "0.5", 0.5},
                                        {"beta2", "0.99", 0.99},
                                        {"epsilon", "1e-6", 1e-6},
                                        {"weight_decay", "0.01", 0.01},
                                        {"clip_norm", "0", 0.0},
                                        {"loss_scale", "1024", 1024.0},
                                        {"loss_scale_interval", "50", 50},
                                        {"loss_scale_backoff", "0.25", 0.25},
                                        {"optimizer", "muon", "muon"},
                                        {"muon_momentum", "0.5", 0.5},
                                        {"muon_iterations", "6", 6},
                                        {"lora_rank", "16", 16},
                                        {"lora_alpha", "32", 32.0},
                                        {"lora_targets", "qkv,projection", {"qkv", "projection"}},
                                        {"document_lengths", "128,512", {128, 512}},
                                        {"document_weights", "3,1", {3, 1}},
                                        {"expert_load", "5,0,1", {5, 0, 1}},
                                        {"expert_zipf", "0.5", 0.5}};
  return kCases;
}

json at(const json& object, std::string field) {
  std::replace(field.begin(), field.end(), '.', '/');
  return object.at(json::json_pointer("/" + field));
}

TEST(SetField, SetsEveryFieldOfAPlanAndNothingElse) {
  std::vector<std::string> names;
  for (const Case& c : plan_cases()) {
    Plan plan;
    Training training;
    set_field(plan, training, c.field, c.text);
    json expected = to_json(Plan{});
    std::string pointer = "/" + std::string(c.field);
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    const json::json_pointer where(pointer);
    ASSERT_NE(expected.value(where, json()), c.value) << c.field;  // replica_micro_batch is written where it is set
    expected[where] = c.value;
    EXPECT_EQ(to_json(plan), expected) << c.field;
    EXPECT_EQ(to_json(training), to_json(Training{}));
    names.emplace_back(c.field);
  }
  EXPECT_EQ(names, plan_fields());
}

// Regression: a training whose batch is not set yet refused every other field.
TEST(SetField, SetsEveryFieldOfATrainingAndNothingElse) {
  std::vector<std::string> names;
  for (const Case& c : training_cases()) {
    Plan plan;
    Training training;
    set_field(plan, training, c.field, c.text);
    json expected = to_json(Training{});
    ASSERT_NE(expected.value(c.field, json()), c.value) << c.field;  // adapters are written where they are set
    expected[c.field] = c.value;
    EXPECT_EQ(to_json(training), expected) << c.field;
    EXPECT_EQ(to_json(plan), to_json(Plan{}));
    names.emplace_back(c.field);
  }
  EXPECT_EQ(names, training_fields());
}

TEST(SetField, KeepsWhatWasSetBefore) {
  Plan plan;
  Training training;
  set_field(plan, training, "tensor", "4");
  set_field(plan, training, "overlap.tensor", "true");
  set_field(plan, training, "overlap.gradient_reduction", "true");
  set_field(plan, training, "stage_layers", "1,2,3");
  set_field(plan, training, "stage_layers", "6");
  EXPECT_EQ(plan.tensor, 4);
  EXPECT_TRUE(plan.overlap.tensor && plan.overlap.gradient_reduction && plan.overlap.pipeline);
  EXPECT_EQ(plan.stage_layers, (std::vector<int>{6}));
  EXPECT_EQ(at(to_json(plan), "overlap.tensor"), true);
}

// A size for all replicas replaces all that were given by replica before it.
TEST(SetField, MicroBatchIsOfAllReplicas) {
  Plan plan;
  Training training;
  set_field(plan, training, "replica_micro_batch", "8,4");
  EXPECT_EQ(plan.replica_micro_batch, (std::vector<int>{8, 4}));
  set_field(plan, training, "tensor", "2");
  EXPECT_EQ(plan.replica_micro_batch.size(), 2U);
  set_field(plan, training, "micro_batch", "2");
  EXPECT_TRUE(plan.replica_micro_batch.empty());
  EXPECT_EQ(plan.micro_batch, 2);
}

std::string error_of(const std::string& field, const std::string& text) {
  Plan plan;
  Training training;
  try {
    set_field(plan, training, field, text);
  } catch (const base::Failure& failure) {
    EXPECT_EQ(failure.error().kind, base::ErrorKind::kUsage);
    EXPECT_EQ(to_json(plan), to_json(Plan{}));  // untouched
    return failure.error().message;
  }
  return "no error";
}

TEST(SetField, ErrorsNameTheOptionAndTheRemedy) {
  EXPECT_EQ(error_of("schedule", "1fb1"), "--schedule: unknown value \"1fb1\"; did you mean \"1f1b\"?");
  EXPECT_EQ(error_of("micro_batch", "0"), "--micro-batch: must be from 1 to 16777216, not 0");
  EXPECT_EQ(error_of("micro_batch", "two"), "--micro-batch: expected a whole number, found text \"two\"");
  EXPECT_EQ(error_of("overlap.tensor", "yes"), "--overlap-tensor: expected true or false, found text \"yes\"");
  EXPECT_EQ(error_of("stage_layers", "4,x"), "--stage-layers: expected a whole number, found text \"x\"");
  EXPECT_EQ(error_of("dropout", "1"), "--dropout: is a probability; give a number below 1");
  EXPECT_EQ(error_of("tenser", "2"), "--tenser: unknown member \"tenser\"; did you mean \"tensor\"?");
}

// Regression: "null" took the member out, and the default came back without a word.
TEST(SetField, NullIsNoValue) {
  EXPECT_EQ(error_of("tensor", "null"), "--tensor: expected a whole number, found text \"null\"");
}

}  // namespace
}  // namespace trivium::program
