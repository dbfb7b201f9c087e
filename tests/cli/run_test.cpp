#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/cli/process.h"

namespace trivium::cli {
namespace {

using nlohmann::json;

/// Text that a byte model learns quickly.
std::string verse(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) text += "In the beginning was the Word, and line " + std::to_string(i) + ".\n";
  return text;
}

std::string run_command(const std::string& more) {
  return "trivium run --model gpt-tiny --cluster this-machine --global-batch 4 --micro-batch 1 --warmup-steps 1 "
         "--corpus text.txt " +
         more;
}

TEST(Run, LearnsAndWritesARecord) {
  const Workplace workplace;
  workplace.write("text.txt", verse(200));
  const Outcome outcome = workplace.run(run_command("--data 2 --steps 3 --record run.json --trace trace.json --json"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::vector<double> losses;
  for (std::string line; std::getline(lines, line);) {
    const json step = json::parse(line);
    EXPECT_EQ(step.at("schema"), "trivium.step/1");
    EXPECT_EQ(step.at("step"), losses.size());
    losses.push_back(step.at("loss"));
  }
  ASSERT_EQ(losses.size(), 3U);
  EXPECT_LT(losses.back(), losses.front());
  const json record = json::parse(workplace.read("run.json"));
  EXPECT_EQ(record.at("schema"), "trivium.run/1");
  EXPECT_EQ(record.at("steps").size(), 3U);
  EXPECT_EQ(record.at("peak_memory_bytes").size(), 2U);
  EXPECT_FALSE(json::parse(workplace.read("trace.json")).at("traceEvents").empty());
}

// The split changes who computes, not what: the summation order does, in fp64 far beyond the sixth digit.
TEST(Run, PrintsTheSameLossesForAnySplit) {
  const Workplace workplace;
  workplace.write("text.txt", verse(200));
  const auto losses = [&](const std::string& split) {
    const Outcome outcome = workplace.run(run_command("--steps 2 --precision fp64 --json " + split));
    std::istringstream lines(outcome.out);
    std::vector<double> values;
    for (std::string line; std::getline(lines, line);) values.push_back(json::parse(line).at("loss"));
    EXPECT_EQ(values.size(), 2U) << outcome.err;
    return values;
  };
  const std::vector<double> whole = losses("");
  for (const char* split : {"--tensor 2", "--pipeline 2", "--tensor 2 --pipeline 2"}) {
    EXPECT_THAT(losses(split), testing::Pointwise(testing::DoubleNear(1e-9), whole)) << split;
  }
}

// 16 bits from the command line, split in every way at once; fp16 tells the scale of its loss.
TEST(Run, TrainsInSixteenBits) {
  const Workplace workplace;
  workplace.write("text.txt", verse(200));
  const auto steps = [&](const std::string& more) {
    const Outcome outcome = workplace.run(run_command("--steps 3 --json " + more));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::istringstream lines(outcome.out);
    std::vector<json> values;
    for (std::string line; std::getline(lines, line);) values.push_back(json::parse(line));
    return values;
  };
  const std::vector<json> wide = steps("--precision fp32");
  ASSERT_EQ(wide.size(), 3U);
  EXPECT_FALSE(wide[0].contains("loss_scale"));
  for (const std::string type : {"bf16", "fp16"}) {
    for (const char* split : {"", "--tensor 2 --pipeline 2 --sequence-parallel --offload-optimizer host",
                              "--data 2 --zero-stage 3 --pipeline 2 --recompute full"}) {
      const std::vector<json> half = steps("--precision " + type + " " + split);
      ASSERT_EQ(half.size(), 3U) << type << split;
      EXPECT_EQ(half[0].contains("loss_scale"), type == "fp16");
      EXPECT_NE(half[0].at("loss"), wide[0].at("loss"));
      EXPECT_NEAR(half[2].at("loss"), wide[2].at("loss"), 0.02 * wide[2].at("loss").get<double>()) << type << split;
    }
  }
}

TEST(Run, ResumesAnFp16TrainingBitByBit) {
  const Workplace workplace;
  workplace.write("text.txt", verse(200));
  const auto last_line = [&](const std::string& more) {
    const Outcome outcome =
        workplace.run(run_command("--data 2 --precision fp16 --loss-scale-interval 2 --json " + more));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::istringstream lines(outcome.out);
    std::string last;
    for (std::string line; std::getline(lines, line);) last = line;
    json step = json::parse(last);
    step.erase("seconds"), step.erase("tokens_per_s"), step.erase("mfu");
    return step;
  };
  const json straight = last_line("--steps 4 --decay-steps 4");
  last_line("--steps 2 --decay-steps 4 --checkpoint kept");
  EXPECT_EQ(last_line("--steps 4 --decay-steps 4 --checkpoint kept --resume"), straight);
}

TEST(Run, FollowsTheCourseItIsGiven) {
  const Workplace workplace;
  workplace.write("text.txt", verse(200));
  workplace.write("other.txt", verse(50));
  const Outcome outcome = workplace.run(
      run_command("--steps 4 --learning-rate 3e-4 --rate-schedule constant --rate-scaling linear --base-batch 2 "
                  "--ramp-batch 2 2 2 --validation other.txt --validate-every 2 --record run.json --json"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::vector<double> rates;
  for (std::string line; std::getline(lines, line);) {
    const json step = json::parse(line);
    rates.push_back(step.at("learning_rate"));
    EXPECT_EQ(step.contains("validation_loss"), step.at("step").get<int>() % 2 == 1) << line;
  }
  // Batches of 2, 2, 4, 4 samples; the rate is meant for 2.
  EXPECT_THAT(rates, testing::Pointwise(testing::DoubleNear(1e-12), {3e-4, 3e-4, 6e-4, 6e-4}));
  EXPECT_TRUE(json::parse(workplace.read("run.json")).at("spikes").is_array());
}

// The peak of generic-cpu is an assumption, of which a run may reach more than all.
TEST(Run, SaysWhatShareOfThePeakItReachesWhereThatIsKnown) {
  const Workplace workplace;
  workplace.write("text.txt", verse(200));
  workplace.write("mine.json", R"({"schema": "trivium.hardware/1", "base": "generic-cpu", "name": "mine",
      "device": {"peak": {"fp64": "40 GFLOP/s", "fp32": "80 GFLOP/s"}}, "sources": {"/device/peak": "measured here"}})");
  workplace.write("based.json", R"({"schema": "trivium.hardware/1", "base": "generic-cpu", "name": "based",
      "price": "1 $/h", "sources": {"/price": "an offer"}})");
  for (const std::string cluster : {"this-machine", "based.json", "mine.json"}) {
    const bool known = cluster == "mine.json";
    std::string command = run_command("--steps 1 --json");
    command.replace(command.find("this-machine"), std::string("this-machine").size(), cluster);
    const Outcome outcome = workplace.run(command);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const json step = json::parse(outcome.out);
    EXPECT_EQ(step.contains("mfu"), known);
    EXPECT_GT(step.value("mfu", 1.0), 0);
  }
}

TEST(Run, RefusesACourseThatCannotBe) {
  const Workplace workplace;
  workplace.write("text.txt", verse(200));
  for (const char* options :
       {"--cooldown-steps 3", "--rate-scaling linear", "--base-batch 4", "--ramp-batch 3 1 1 --data 2",
        "--ramp-batch 8 4 1", "--ramp-batch 2 0 1", "--rate-schedule triangle", "--validate-every 3"}) {
    const Outcome outcome = workplace.run(run_command(std::string("--steps 1 ") + options));
    EXPECT_EQ(outcome.exit_code, 2) << options << ": " << outcome.err;
    EXPECT_THAT(outcome.err, testing::StartsWith("error: ")) << options;
  }
}

TEST(Run, KeepsWhatItReachedWhenInterrupted) {
  const Workplace workplace;
  workplace.write("text.txt", verse(200));
  // `exec` inside a background shell: the signal reaches the program itself.
  const Outcome outcome = workplace.run("(trap - INT; exec " + run_command("--steps 100000 --record run.json") +
                                        ") > steps & p=$!; await $p '[ -s steps ]'; kill -TERM $p; wait $p");
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_THAT(outcome.err, testing::HasSubstr("run.json holds them"));
  EXPECT_GE(json::parse(workplace.read("run.json")).at("steps").size(), 1U);
}

TEST(Run, LeadsToValidationAndCalibration) {
  const Workplace workplace;
  workplace.write("text.txt", verse(200));
  const Outcome planned =
      workplace.run("trivium plan --model gpt-tiny --cluster this-machine --ranks 1 --global-batch 4 -o plan.json");
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  ASSERT_EQ(workplace.run("trivium run plan.json --corpus text.txt --steps 3 --record run.json").exit_code, 0);
  const Outcome validated = workplace.run("trivium validate plan.json run.json --json");
  ASSERT_EQ(validated.exit_code, 0) << validated.err;
  const Outcome alone = workplace.run("trivium validate run.json --json");
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_EQ(alone.out, validated.out) << "the record holds the plan";
  const Outcome plan_alone = workplace.run("trivium validate plan.json");
  EXPECT_EQ(plan_alone.exit_code, 2);
  EXPECT_THAT(plan_alone.err, testing::HasSubstr("plan.json: is a plan; give its run record"));
  EXPECT_EQ(json::parse(validated.out).at("schema"), "trivium.validation/1");
  EXPECT_EQ(workplace.run("trivium validate plan.json run.json --max-error 0").exit_code, 1);
  EXPECT_EQ(workplace.run("trivium validate plan.json run.json --max-error 1000000").exit_code, 0);
  EXPECT_EQ(workplace.run("trivium validate plan.json run.json --html page.html --csv table.csv").exit_code, 0);
  EXPECT_THAT(workplace.read("page.html"), testing::HasSubstr("</html>"));
  EXPECT_THAT(workplace.read("table.csv"), testing::HasSubstr("\nop,matmul,"));
  const Outcome history = workplace.run("trivium validate --history . --json");
  ASSERT_EQ(history.exit_code, 0) << history.err;
  EXPECT_EQ(json::parse(history.out).at("runs").size(), 1U);
  EXPECT_FALSE(json::parse(history.out).at("runs").at(0).at("date").get<std::string>().empty());
  const Outcome fitted = workplace.run("trivium calibrate run.json -o fitted.json");
  ASSERT_EQ(fitted.exit_code, 0) << fitted.err;
  EXPECT_EQ(workplace.run("trivium profiles fitted.json").exit_code, 0);
  EXPECT_EQ(workplace.run("trivium calibrate run.json -o run.json").exit_code, 2);
}

TEST(Run, ATraceTeachesWhatTheRecordDoes) {
  const Workplace workplace;
  workplace.write("text.txt", verse(200));
  const Outcome ran = workplace.run(run_command("--data 2 --steps 4 --record run.json --trace trace.json"));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  ASSERT_EQ(workplace.run("trivium calibrate run.json -o native.json").exit_code, 0);
  const Outcome imported = workplace.run("trivium calibrate trace.json -o imported.json");
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_EQ(workplace.read("imported.json"), workplace.read("native.json"));
}

TEST(Run, MoreRanksThanCoresArePredictedToo) {
  if (const unsigned cores = std::thread::hardware_concurrency(); cores >= 64) {
    GTEST_SKIP() << "each of the 64 ranks has a core: this machine has " << cores;
  }
  const Workplace workplace;
  workplace.write("text.txt", verse(200));
  const Outcome ran = workplace.run(
      "trivium run --model gpt-tiny --cluster this-machine --global-batch 64 --data 64 --warmup-steps 1 --corpus "
      "text.txt "
      "--steps 2 --record run.json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, testing::HasSubstr("64 ranks share"));
  const Outcome predicted = workplace.run("trivium validate --history . --json");
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_TRUE(json::parse(predicted.out).at("runs").at(0).at("unsupported").is_null());
}

// Three of four layers on the first stage: whatever is measured, the losses are those of any plan.
TEST(Run, RebalancesWhileItGoesOn) {
  const Workplace workplace;
  workplace.write("text.txt", std::string(4000, 'a') + std::string(4000, 'b'));
  const std::string job =
      "trivium run --model gpt-tiny --pipeline 2 --stage-layers 3,1 --global-batch 8 --corpus text.txt --steps 9";
  const std::string losses = " | sed -n 's/.*loss \\([0-9.]*\\).*/\\1/p'";
  const Outcome alone = workplace.run(job + losses);
  const Outcome moved = workplace.run(job + " --checkpoint ck --rebalance 4" + losses);
  EXPECT_EQ(alone.out, moved.out);
  EXPECT_EQ(std::ranges::count(moved.out, '\n'), 9);
  EXPECT_THAT(moved.err, ::testing::HasSubstr("note: step 3: "));
  EXPECT_THAT(moved.err, ::testing::HasSubstr("note: step 7: "));
  const Outcome bare = workplace.run(job + " --rebalance 4");
  EXPECT_EQ(bare.exit_code, 2);
  EXPECT_THAT(bare.err, ::testing::HasSubstr("--rebalance goes on from a checkpoint"));
}

}  // namespace
}  // namespace trivium::cli
