#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "models/load.h"

namespace trivium::models {
namespace {

using nlohmann::json;

json smallest() {
  return {{"schema", "trivium.model/1"},
          {"name", "mine"},
          {"layers", 2},
          {"hidden", 8},
          {"heads", 4},
          {"vocab", 10},
          {"max_sequence", 6}};
}

/// The error for the smallest model with one member changed.
std::string message_with(const std::string& key, const json& value, const std::string& where = "m.json") {
  json document = smallest();
  document[key] = value;
  try {
    (void)model_from_json(document, where);
  } catch (const base::Failure& failure) {
    EXPECT_EQ(failure.error().kind, base::ErrorKind::kInput);
    EXPECT_EQ(failure.error().message.find('\n'), std::string::npos);
    return failure.error().message;
  }
  return "nothing thrown";
}

TEST(ModelJson, WhatStandsOnlyWithOthersIsNamed) {
  EXPECT_THAT(message_with("temperature", {{"slope", 0.1}, {"run", 8}}),
              testing::HasSubstr("do not turn (plain_full)"));
  EXPECT_THAT(message_with("plain_head_norms", true), testing::HasSubstr("stands with rotary positions"));
  EXPECT_THAT(message_with("window", {{"keys", 2}, {"full_every", 2}, {"plain_full", true}}),
              testing::HasSubstr("where positions are rotary and some layers see all keys"));
}

TEST(ModelJson, DefaultsAreThoseOfAGpt2Block) {
  const Model model = model_from_json(smallest(), "m.json");
  EXPECT_EQ(model.kv_heads, 4);
  EXPECT_EQ(model.head_dim, 2);     // 8 / 4
  EXPECT_EQ(model.ffn_hidden, 32);  // 4 x 8
  EXPECT_EQ(model.norm, Norm::kLayerNorm);
  EXPECT_EQ(model.positions, Positions::kLearned);
  EXPECT_EQ(model.activation, Activation::kGelu);
  EXPECT_TRUE(model.linear_bias && model.qkv_bias && model.tied_embeddings && model.shared_norm);
  EXPECT_FALSE(model.parallel_block || model.experts.has_value());
}

TEST(ModelJson, ProjectionsOfAttentionHaveBiasesWhereAllOthersDo) {
  json document = smallest();
  document["linear_bias"] = false;
  EXPECT_FALSE(model_from_json(document, "m.json").qkv_bias);
  document["qkv_bias"] = true;  // Qwen 2
  EXPECT_TRUE(model_from_json(document, "m.json").qkv_bias);
}

TEST(ModelJson, EveryMemberIsRead) {
  json document = smallest();
  document.update(
      {{"source", "a paper"},
       {"kv_heads", 2},
       {"head_dim", 6},
       {"ffn_hidden", 20},
       {"norm", "rms_norm"},
       {"positions", "rotary"},
       {"activation", "geglu"},
       {"linear_bias", false},
       {"qkv_bias", false},
       {"tied_embeddings", false},
       {"parallel_block", true},
       {"shared_norm", false},
       {"experts", {{"count", 8}, {"top_k", 2}, {"every", 2}, {"capacity_factor", 1.5}, {"balance_loss", 0.02}}}});
  const Model model = model_from_json(document, "m.json");
  EXPECT_EQ(model.source, "a paper");
  EXPECT_EQ(model.kv_heads, 2);
  EXPECT_EQ(model.head_dim, 6);
  EXPECT_EQ(model.ffn_hidden, 20);
  EXPECT_EQ(model.norm, Norm::kRmsNorm);
  EXPECT_EQ(model.positions, Positions::kRotary);
  EXPECT_EQ(model.activation, Activation::kGeglu);
  EXPECT_FALSE(model.linear_bias || model.qkv_bias || model.tied_embeddings || model.shared_norm);
  EXPECT_TRUE(model.parallel_block);
  EXPECT_EQ(model.experts, (Experts{.count = 8, .top_k = 2, .every = 2, .capacity_factor = 1.5, .balance_loss = 0.02}));
  EXPECT_EQ(model_from_json(to_json(model), "again.json"), model);
}

TEST(ModelJson, ModulesOfMultiTokenPredictionAreRead) {
  json document = smallest();
  document["positions"] = "rotary";
  document["mtp"] = json::object();
  EXPECT_EQ(model_from_json(document, "m.json").mtp, (MultiToken{.depth = 1, .loss_scale = 0.1}));
  document["mtp"] = {{"depth", 3}, {"loss_scale", 0.3}};
  const Model model = model_from_json(document, "m.json");
  EXPECT_EQ(model.mtp, (MultiToken{.depth = 3, .loss_scale = 0.3}));
  EXPECT_EQ(model_from_json(to_json(model), "again.json"), model);
  EXPECT_THAT(message_with("mtp", {{"depth", 0}}), ::testing::HasSubstr("m.json#/mtp/depth: must be from 1 to 64"));
  EXPECT_THAT(message_with("mtp", {{"depth", 1}}), ::testing::HasSubstr("mtp with learned positions"));
}

TEST(ModelJson, MistakesAreToldWithPlaceAndAdvice) {
  EXPECT_EQ(message_with("layers", 0), "m.json#/layers: must be from 1 to 10000, not 0");
  EXPECT_EQ(message_with("layers", -3), "m.json#/layers: must be from 1 to 10000, not -3");
  EXPECT_EQ(message_with("hidden", 8.0), "m.json#/hidden: expected a whole number from 1 to 16777216, found 8");
  EXPECT_EQ(message_with("vocab", 1e30), "m.json#/vocab: expected a whole number from 1 to 67108864, found 1e+30");
  EXPECT_EQ(message_with("heads", "4"), "m.json#/heads: expected a whole number, found text \"4\"");
  EXPECT_EQ(message_with("norm", "rmsnorm"), "m.json#/norm: unknown value \"rmsnorm\"; did you mean \"rms_norm\"?");
  EXPECT_EQ(message_with("hiden", 8), "m.json#/hiden: unknown member \"hiden\"; did you mean \"hidden\"?");
  EXPECT_EQ(message_with("name", ""), "m.json#/name: must not be empty");
  EXPECT_EQ(message_with("schema", "trivium.model/2"),
            "m.json#/schema: unknown value \"trivium.model/2\"; did you mean \"trivium.model/1\"?");
}

TEST(ModelJson, ContradictionsAreTold) {
  EXPECT_EQ(message_with("heads", 3),
            "m.json#: hidden (8) is not a multiple of heads (3); give head_dim or change one");
  EXPECT_EQ(message_with("kv_heads", 3),
            "m.json#: heads (4) is not a multiple of kv_heads (3); every key head serves as many query heads");
  EXPECT_THAT(message_with("kv_heads", 8), ::testing::HasSubstr("not a multiple of kv_heads (8)"));
  EXPECT_EQ(message_with("experts", {{"count", 2}, {"top_k", 3}}),
            "m.json#: top_k (3) is more than the number of experts (2)");
  EXPECT_EQ(message_with("experts", {{"count", 2}, {"every", 3}}),
            "m.json#: every (3) is more than layers (2): no layer would be a mixture");
  EXPECT_EQ(message_with("experts", {{"count", 2}, {"capacity_factor", 0}}),
            "m.json#/experts/capacity_factor: must be more than 0 and at most 1e6");
  EXPECT_EQ(message_with("experts", {{"count", 2}, {"balance_loss", -1}}),
            "m.json#/experts/balance_loss: must be 0 or more and at most 1e6");
  EXPECT_THAT(message_with("experts", json::object()), ::testing::HasSubstr("m.json#/experts: missing \"count\""));
}

TEST(ModelJson, RotaryPositionsNeedAnEvenHeadDimension) {
  json document = smallest();
  document["positions"] = "rotary";
  document["head_dim"] = 3;
  EXPECT_THROW((void)model_from_json(document, "m.json"), base::Failure);
}

TEST(ModelJson, CountsThatWouldLeaveSixtyFourBitsAreRefused) {
  // 2 layers x 1,048,576 experts x 3 x 16,777,216 x 8 is about 8e14; with a wide hidden it passes 1e17.
  json document = smallest();
  document["hidden"] = 16777216;
  document["ffn_hidden"] = 16777216;
  document["experts"] = {{"count", 1048576}};
  try {
    (void)model_from_json(document, "m.json");
    FAIL();
  } catch (const base::Failure& failure) {
    EXPECT_THAT(failure.error().message, ::testing::HasSubstr("parameters; the most that is supported is 1e+17"));
  }
}

TEST(ModelJson, ErrorsInsideAnotherFileContinueItsPointer) {
  EXPECT_THAT(message_with("layers", 0, "plan.json#/model"), ::testing::StartsWith("plan.json#/model/layers: must be"));
}

TEST(ModelJson, AnythingButAnObjectIsRefused) {
  for (const char* text : {"null", "[]", "3", "\"gpt2-124m\"", "{}"}) {
    EXPECT_THROW((void)model_from_json(json::parse(text), "m.json"), base::Failure) << text;
  }
}

}  // namespace
}  // namespace trivium::models
