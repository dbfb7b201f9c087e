#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/process.h"

namespace trivium::cli {
namespace {

constexpr const char* kRun =
    "trivium run --model gpt-tiny --cluster this-machine --tensor 2 --pipeline 2 --global-batch 4 --steps 2 "
    "--corpus text.txt --record run.json --json";

constexpr const char* kSharded =
    "trivium run --model gpt-tiny --cluster this-machine --data 4 --zero-stage 3 --shard-group 2 --micro-batch 1 "
    "--overlap-parameter-gather --overlap-gradient-reduction --global-batch 8 --steps 2 --corpus text.txt "
    "--record run.json --json";

std::string under_mpirun(int processes, const std::string& command) {
  return std::string(TRIVIUM_MPIRUN) + " -n " + std::to_string(processes) + " " + command;
}

Workplace& with_text(Workplace& workplace) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "In the beginning was the Word, and line " + std::to_string(i) + ".\n";
  workplace.write("text.txt", text);
  return workplace;
}

/// What training computed, without how long it took.
std::vector<double> losses(const Workplace& workplace) {
  std::vector<double> values;
  const auto record = nlohmann::json::parse(workplace.read("run.json"));
  for (const auto& step : record.at("steps")) values.push_back(step.at("loss"));
  return values;
}

TEST(RunOverMpi, ComputesBitForBitWhatThreadsCompute) {
  Workplace workplace;
  ASSERT_EQ(with_text(workplace).run(kRun).exit_code, 0);
  const std::vector<double> threads = losses(workplace);
  const Outcome outcome = workplace.run(under_mpirun(4, kRun));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(losses(workplace), threads);
  const auto record = nlohmann::json::parse(workplace.read("run.json"));
  EXPECT_EQ(record.at("backend"), "cpu-mpi");
  EXPECT_THAT(record.at("host").at("mpi").get<std::string>(), testing::ContainsRegex("[0-9]+\\.[0-9]+"));
}

// Shards are gathered and reduced inside groups of two, which then add their sums.
TEST(RunOverMpi, ShardedParametersComputeWhatThreadsCompute) {
  Workplace workplace;
  ASSERT_EQ(with_text(workplace).run(kSharded).exit_code, 0);
  const std::vector<double> threads = losses(workplace);
  const Outcome outcome = workplace.run(under_mpirun(4, kSharded));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(losses(workplace), threads);
}

// mpirun is the user's own here, the ranks are ours.
TEST(RunOverMpi, RanksOfOneHostListenForNobody) {
  Workplace workplace;
  const std::string endless =
      "trivium run --model gpt-tiny --cluster this-machine --data 2 --global-batch 4 --sequence 32 --steps 1000000 "
      "--corpus text.txt --timeline-steps 0 --json";
  const Outcome outcome =
      with_text(workplace).run(under_mpirun(2, endless) +
                               " >out & p=$!; await $p '[ -s out ]'; ranks=$(cat /proc/$p/task/*/children)\n"
                               "echo $ranks | wc -w; foreign_listeners $ranks; kill -TERM $p; wait $p");
  EXPECT_EQ(outcome.out, "2\n") << outcome.err;
}

TEST(RunOverMpi, SaysOnceThatTheNumberOfProcessesIsWrong) {
  Workplace workplace;
  const Outcome outcome = with_text(workplace).run(under_mpirun(2, kRun));
  EXPECT_EQ(outcome.exit_code, 2);
  const std::string error = "error: the plan has 4 ranks, mpirun started 2";
  const std::size_t first = outcome.err.find(error);
  ASSERT_NE(first, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find(error, first + 1), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace trivium::cli
