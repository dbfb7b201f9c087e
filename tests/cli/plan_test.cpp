#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/process.h"

namespace trivium::cli {
namespace {

using nlohmann::json;

constexpr const char* kSmall = "trivium plan --model gpt2-124m --cluster dgx-a100-80gb:1 --global-batch 16 --json";

std::set<std::string> keys(const json& object) {
  std::set<std::string> names;
  for (const auto& [name, value] : object.items()) names.insert(name);
  return names;
}

TEST(Plan, WritesPlansWorthMeasuring) {
  const Workplace workplace;
  const Outcome outcome = workplace.run(std::string(kSmall) + " --trials 2");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json trials = json::parse(outcome.out).at("trials");
  ASSERT_EQ(trials.size(), 2U);
  EXPECT_GE(trials[0].at("fastest_probability"), trials[1].at("fastest_probability"));
  const json file = json::parse(workplace.read("trials/trial-1.json"));
  EXPECT_EQ(file.at("plan"), trials[0].at("plan"));
  const Outcome again = workplace.run(std::string(kSmall) + " --trials 2");
  EXPECT_EQ(again.exit_code, 2) << "nothing is overwritten";
  EXPECT_THAT(again.err, testing::HasSubstr("--trials-folder"));
}

TEST(Plan, FitsTheSurerTheMoreIsAskedFor) {
  const Workplace workplace;
  const auto usable = [&](const std::string& probability) {
    const Outcome outcome = workplace.run(std::string(kSmall) + " --fit-probability " + probability);
    return json::parse(outcome.out).at("best").at("fit_probability").get<double>();
  };
  EXPECT_GE(usable("0.999"), 0.999);
  EXPECT_EQ(workplace.run(std::string(kSmall) + " --fit-probability 1").exit_code, 2);
}

TEST(Plan, JsonHasTheAgreedKeys) {
  const Workplace workplace;
  const Outcome outcome = workplace.run(kSmall);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result.at("schema"), "trivium.plan-result/1");
  EXPECT_THAT(keys(result), testing::ElementsAre("baselines", "best", "cluster", "missing", "model",
                                                 "never_run_on_several_gpus", "others", "promise", "published_run",
                                                 "rejected", "schema", "search", "top", "trainers", "training"));
  EXPECT_THAT(keys(result.at("best")),
              testing::ElementsAre("beats_second_probability", "certainty", "comparable", "fit_probability", "hfu",
                                   "iteration_expected_s", "iteration_interval_90_s", "iteration_s", "mfu", "mfu_peak",
                                   "peak_interval_90_bytes", "peak_memory_bytes", "plan", "proved", "tokens_per_s"));
  EXPECT_GE(result.at("best").at("fit_probability"), 0.95);
  EXPECT_GE(result.at("best").at("beats_second_probability"), 0.5);
  EXPECT_EQ(result.at("best").at("proved"), true);
  EXPECT_EQ(result.at("others").at(0).at("proved"), false);
  EXPECT_EQ(result.at("best"), result.at("top").at(0));
  EXPECT_EQ(result.at("search").at("proved"), true);
  double last = 0;
  for (const json& candidate : result.at("top")) {
    EXPECT_THAT(keys(result.at("best")), testing::IsSupersetOf(keys(candidate)));
    const auto [low, high] = candidate.at("iteration_interval_90_s").get<std::pair<double, double>>();
    EXPECT_LT(low, candidate.at("iteration_expected_s"));
    EXPECT_GT(high, candidate.at("iteration_expected_s"));
    EXPECT_GE(candidate.at("iteration_s").get<double>(), last);
    last = candidate.at("iteration_s");
  }
}

// What is printed with the plan: baselines, one of them always the layer split, and the best measured MFU.
TEST(Plan, StandsBesideNaiveWaysAndWhatWasMeasured) {
  const Workplace workplace;
  const json result = json::parse(workplace.run(kSmall).out);
  const json& ways = result.at("baselines").at("ways");
  ASSERT_EQ(ways.size(), 4U);
  EXPECT_EQ(ways.at(0).at("name"), "naive layer split");
  EXPECT_EQ(ways.at(0).at("plan").at("schedule"), "sequential");
  EXPECT_GT(ways.at(0).at("speed_up").get<double>(), 0);
  const double busy = result.at("baselines").at("busy");
  EXPECT_GE(busy, result.at("best").at("mfu").get<double>());
  EXPECT_LE(busy, 1);
  EXPECT_EQ(result.at("promise").at("above"),
            result.at("best").at("mfu").get<double>() > result.at("promise").at("measured_mfu").get<double>());
  const std::string text =
      workplace.run("trivium plan --model gpt2-124m --cluster dgx-a100-80gb:1 --global-batch 16 --all").out;
  EXPECT_THAT(text, testing::HasSubstr("naive layer split"));
  EXPECT_THAT(text, testing::HasSubstr("published runs in validation/ of dense models in 16 bits on a100-sxm-80gb"));
}

TEST(Plan, GivesTheSameAnswerWithAnyNumberOfThreads) {
  const Workplace workplace;
  const auto without_clock = [&](const std::string& command) {
    json result = json::parse(workplace.run(command).out);
    result.at("search").erase("seconds");
    return result.dump();
  };
  const std::string one = without_clock(std::string(kSmall) + " --threads 1");
  EXPECT_EQ(one, without_clock(std::string(kSmall) + " --threads 1"));
  EXPECT_EQ(one, without_clock(std::string(kSmall) + " --threads 3"));
}

TEST(Plan, KeepsEveryFieldThatWasGiven) {
  const Workplace workplace;
  const json result = json::parse(workplace.run(std::string(kSmall) + " --tensor 2 --zero-stage 0 --best 50").out);
  for (const json& candidate : result.at("top")) {
    EXPECT_EQ(candidate.at("plan").at("tensor"), 2);
    EXPECT_EQ(candidate.at("plan").at("zero_stage"), 0);
  }
}

TEST(Plan, SaysWhyWhenNothingFits) {
  const Workplace workplace;
  const Outcome outcome =
      workplace.run("trivium plan --model gpt3-175b --cluster dgx-a100-80gb:1 --global-batch 8 --json");
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.err, testing::HasSubstr("no plan fits"));
  const json result = json::parse(outcome.out);
  EXPECT_TRUE(result.at("best").is_null());
  EXPECT_FALSE(result.at("rejected").empty());
}

// Thousands of plans on one thread take seconds; the signal comes as soon as it is taken for a request.
TEST(Plan, KeepsTheBestSoFarWhenInterrupted) {
  const Workplace workplace;
  const Outcome outcome = workplace.run(
      "trivium plan --model megatron-1008.0b --cluster dgx-a100-80gb:384 --global-batch 3072 --threads 1 --json "
      "> result.json & p=$!; await $p 'asked_by_signals $p'; kill -INT $p; wait $p");
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_EQ(json::parse(workplace.read("result.json")).at("search").at("proved"), false);
}

TEST(Plan, ChoosesThePrecisionTheDevicesHave) {
  const Workplace workplace;
  const auto precision_on = [&](const std::string& cluster) {
    const std::string job = "trivium plan --model gpt2-124m --global-batch 8 --best 1 --json --cluster ";
    return json::parse(workplace.run(job + cluster).out).at("best").at("plan").at("precision").get<std::string>();
  };
  EXPECT_EQ(precision_on("dgx-a100-80gb:1"), "bf16");
  EXPECT_EQ(precision_on("dgx1-v100-32gb:1"), "fp16");
  EXPECT_EQ(precision_on("generic-cpu"), "fp32");
}

/// What `plan` may write, as its schema lists it, is what other commands read.
TEST(Plan, EveryMemberOfItsSchemaIsReadBack) {
  const Workplace workplace;
  const Outcome schema = workplace.run("trivium schema plan-result");
  ASSERT_EQ(schema.exit_code, 0) << schema.err;
  json result = json::parse(workplace.run(std::string(kSmall) + " --for megatron").out);
  for (const auto& [name, what] : json::parse(schema.out).at("properties").items()) {
    if (!result.contains(name)) result[name] = nullptr;
  }
  workplace.write("plan.json", result.dump());
  const Outcome simulated = workplace.run("trivium simulate plan.json");
  EXPECT_EQ(simulated.exit_code, 0) << simulated.err;
}

}  // namespace
}  // namespace trivium::cli
