// Runs of other trainers explained against a plan, as a user does it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/process.h"

namespace trivium::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::string source(const std::string& path) { return std::string(TRIVIUM_SOURCE_DIR) + "/" + path; }

std::string traces(const std::string& variant) {
  const std::string stem = source("tests/data/foreign/" + variant + "-rank");
  return " --trace " + stem + "0.pt.trace.json.gz " + stem + "1.pt.trace.json.gz";
}

/// A machine of two cores, whatever this one has.
class ExplainTrace : public testing::Test {
 protected:
  ExplainTrace() {
    workplace_.run("sed 's/\"devices\": \"detect\"/\"devices\": 2/; s/\"name\": \"generic-cpu\"/\"name\": \"two\"/' " +
                   source("hardware_profiles/generic-cpu.json") + " > two.json");
  }
  Outcome explain(const std::string& words) const {
    return workplace_.run("trivium explain --model " + source("tests/foreign/llama-10m.json") +
                          " --cluster two.json:1 " + words);
  }
  Workplace workplace_;
};

std::vector<std::string> keys(const json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

TEST_F(ExplainTrace, TellsItsFindingsAsJson) {
  const Outcome outcome = explain("auto --json" + traces("slow-rank"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json told = json::parse(outcome.out);
  EXPECT_EQ(told.at("schema"), "trivium.trace-explanation/1");
  EXPECT_THAT(keys(told),
              UnorderedElementsAre("schema", "matched_share", "iteration_s", "ops", "findings", "winnable_s"));
  EXPECT_THAT(keys(told.at("iteration_s")), UnorderedElementsAre("measured", "predicted"));
  EXPECT_THAT(keys(told.at("ops").at(0)), UnorderedElementsAre("op", "count", "measured_s", "predicted_s"));
  EXPECT_THAT(keys(told.at("findings").at(0)),
              UnorderedElementsAre("what", "rank", "seconds", "remedy", "cause", "confidence", "spans"));
  EXPECT_GE(told.at("matched_share"), .95);
  EXPECT_EQ(told.at("findings").at(0).at("rank"), 1);
  EXPECT_LE(told.at("winnable_s"), told.at("iteration_s").at("measured"));
}

TEST_F(ExplainTrace, IsReadableWithinAHundredColumns) {
  const Outcome outcome = explain("auto" + traces("unfused"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  EXPECT_THAT(outcome.out, HasSubstr("llama-10m, TP1 PP1 DP2 ZeRO-3 mb4"));
  EXPECT_THAT(outcome.out, HasSubstr("attention runs unfused"));
  EXPECT_THAT(outcome.out, HasSubstr(" can be won: "));
  EXPECT_LT(outcome.out.find("attention runs unfused"), outcome.out.find("  op "));  // findings come first
}

TEST_F(ExplainTrace, TakesAPlanFile) {
  const std::string job =
      "--model " + source("tests/foreign/llama-10m.json") +
      " --cluster two.json:1 --sequence 256 --global-batch 8 --data 2 --zero-stage 3 --micro-batch 4 ";
  const Outcome planned = workplace_.run("trivium plan " + job + "-o plan.json");
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const Outcome whole = workplace_.run("trivium explain plan.json --json" + traces("plain"));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_GE(json::parse(whole.out).at("matched_share"), .95);
}

// Every product has the plan's shape, but a model of 1,600 layers is not the one of four that ran.
TEST_F(ExplainTrace, RefusesATraceOfAnotherJob) {
  workplace_.run("sed 's/\"layers\": [0-9]*/\"layers\": 1600/' " + source("tests/foreign/llama-10m.json") +
                 " > deep.json");
  const Outcome outcome =
      workplace_.run("trivium explain auto --model deep.json --cluster two.json:1" + traces("plain"));
  EXPECT_EQ(outcome.exit_code, 3) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("is of another job: the compute of an iteration takes"));
}

TEST_F(ExplainTrace, RefusesInOneLineWithTheFile) {
  workplace_.write("text.json", "{}");
  const auto refused = [&](const std::string& words, int code, const std::string& why) {
    const Outcome outcome = explain(words);
    EXPECT_EQ(outcome.exit_code, code) << words;
    EXPECT_THAT(outcome.err, HasSubstr("error: "));
    EXPECT_THAT(outcome.err, HasSubstr(why)) << words;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  };
  refused("auto --trace text.json", 3, "text.json: is no trace of PyTorch's profiler");
  refused("auto --trace missing.json", 3, "missing.json");
  refused("auto --micro-batch 2" + traces("plain"), 3, "micro-batches have 512 tokens on a rank");
  refused("auto --why-not text.json" + traces("plain"), 2, "--trace and --why-not");
  refused("--data 1 --sequence 256 --global-batch 4 --micro-batch 4" + traces("plain"), 3,
          "is of a run with 2 ranks, the plan has 1");
  refused("auto --max-input 100kB" + traces("plain"), 3, "--max-input SIZE allows more");
}

}  // namespace
}  // namespace trivium::cli
