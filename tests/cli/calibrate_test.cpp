// Measurements of any kind on one command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/process.h"

namespace trivium::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string sample(const std::string& name) { return std::string(TRIVIUM_SOURCE_DIR) + "/tests/data/" + name; }

json number(const json& calibration, const std::string& pointer) {
  for (const json& each : calibration.at("numbers")) {
    if (each.at("pointer") == pointer) return each;
  }
  ADD_FAILURE() << "nothing about " << pointer;
  return {};
}

TEST(Calibrate, TakesAnyMixAndKeepsWhatMadeWhichNumber) {
  const Workplace workplace;
  const Outcome outcome =
      workplace.run("trivium calibrate " + sample("kineto.pt.trace.json") + " " + sample("nccl_all_reduce.txt") + " " +
                    sample("nsight.sqlite") + " --base dgx-h100-80gb -o fitted.json --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json told = json::parse(outcome.out);
  EXPECT_EQ(told.at("schema"), "trivium.calibration/1");
  EXPECT_TRUE(number(told, "/allreduce_bus/8").at("determined"));
  EXPECT_THAT(number(told, "/device/gemm_efficiency").at("from").get<std::string>(), HasSubstr("kineto.pt.trace.json"));
  const json profile = json::parse(workplace.read("fitted.json"));
  EXPECT_THAT(profile.at("sources").at("/device/gemm_efficiency").get<std::string>(), HasSubstr("Kineto trace"));
  EXPECT_THAT(profile.at("sources").at("/allreduce_latency/8").get<std::string>(), HasSubstr("nccl-tests in"));
  EXPECT_EQ(workplace.run("trivium profiles fitted.json").exit_code, 0);
}

// As PyTorch writes traces, and as people keep logs.
TEST(Calibrate, ReadsWhatGzipPacked) {
  const Workplace workplace;
  workplace.run("gzip -c " + sample("kineto.pt.trace.json") + " > trace.json.gz; gzip -c " +
                sample("nccl_all_reduce.txt") + " > bench.txt.gz; head -c 900 trace.json.gz > cut.json.gz");
  const std::string command = "trivium calibrate --base dgx-h100-80gb ";
  ASSERT_EQ(workplace.run(command + "trace.json.gz bench.txt.gz -o packed.json").exit_code, 0);
  ASSERT_EQ(
      workplace.run(command + sample("kineto.pt.trace.json") + " " + sample("nccl_all_reduce.txt") + " -o plain.json")
          .exit_code,
      0);
  json packed = json::parse(workplace.read("packed.json")), plain = json::parse(workplace.read("plain.json"));
  packed.erase("sources"), plain.erase("sources");  // they name the files
  EXPECT_EQ(packed, plain);
  const Outcome cut = workplace.run(command + "cut.json.gz -o cut.json");
  EXPECT_EQ(cut.exit_code, 3);
  EXPECT_THAT(cut.err, HasSubstr("error: cut.json.gz: is compressed and ends early"));
  EXPECT_EQ(workplace.read("cut.json"), "");
  workplace.run("gzip -c " + sample("nsight.sqlite") + " > nsight.sqlite.gz");
  EXPECT_THAT(workplace.run(command + "nsight.sqlite.gz -o n.json").err, HasSubstr("gunzip it first"));
}

TEST(Calibrate, SaysWhatATraceOfCoresLacks) {
  const Workplace workplace;
  const Outcome outcome =
      workplace.run("trivium calibrate --base dgx-h100-80gb -o fitted.json " + sample("kineto_cpu.pt.trace.json.gz"));
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("holds no kernel of a GPU, only "));
}

// A log says how long; the plan before it says what.
TEST(Calibrate, ALogNeedsItsPlan) {
  const Workplace workplace;
  const std::string plan =
      "trivium plan --model gpt3-13b --cluster dgx-h100-80gb:2 --sequence 2048 --tensor 8 --pipeline 2 --data 1 -o ";
  ASSERT_EQ(workplace.run(plan + "plan.json --global-batch 64").exit_code, 0);
  const Outcome alone = workplace.run("trivium calibrate " + sample("megatron.log") + " -o fitted.json");
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.err, HasSubstr("give its plan file before it"));
  const Outcome together =
      workplace.run("trivium calibrate plan.json " + sample("megatron.log") + " -o fitted.json --json");
  ASSERT_EQ(together.exit_code, 0) << together.err;
  const json told = json::parse(together.out);
  EXPECT_EQ(number(told, "/device/compute_scale").at("samples"), 1);
  // One iteration does not tell the constants of a machine apart; what it does to each is said, and memory is compared.
  EXPECT_THAT(told.at("report").dump(), HasSubstr("megatron.log: 3.01 s, predicted"));
  EXPECT_THAT(told.at("report").dump(), HasSubstr("peak 35.3 GiB"));
  ASSERT_EQ(workplace.run(plan + "other.json --global-batch 32").exit_code, 0);
  const Outcome other = workplace.run("trivium calibrate other.json " + sample("megatron.log") + " -o fitted.json");
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_THAT(other.err, HasSubstr("ran with global batch 64, its plan says 32"));
}

// tests/data/README.md says how each was recorded.
TEST(Calibrate, TakesWhatOtherProgramsWrote) {
  const Workplace workplace;
  const std::string command = "trivium calibrate --base dgx-h100-80gb -o fitted.json --json ";
  const Outcome gathers = workplace.run(command + sample("nccl_all_gather_perf_h100.txt"));
  ASSERT_EQ(gathers.exit_code, 0) << gathers.err;
  EXPECT_THAT(gathers.out, HasSubstr("hosts of its 16 ranks are not named; taken as 2 of 8 devices"));
  EXPECT_TRUE(number(json::parse(gathers.out), "/network/efficiency").at("determined"));
  const Outcome ranges = workplace.run(command + sample("nsight_cpu.sqlite"));
  EXPECT_EQ(ranges.exit_code, 3);
  EXPECT_THAT(ranges.err, HasSubstr("only 32 NVTX ranges on the host (8 iterations, "));
  workplace.write("model.json", R"({"schema": "trivium.model/1", "name": "small", "source": "record_megatron.py",
    "layers": 2, "hidden": 64, "heads": 4, "vocab": 128, "max_sequence": 64})");
  const std::string plan =
      "trivium plan --ranks 2 --model model.json --cluster dgx-h100-80gb --sequence 64 --global-batch 16 --pipeline 1 "
      "--tensor ";
  ASSERT_EQ(workplace.run(plan + "2 --data 1 -o two.json").exit_code, 0);
  const Outcome log = workplace.run("trivium calibrate -o fitted.json --json two.json " + sample("megatron_cpu.log"));
  ASSERT_EQ(log.exit_code, 0) << log.err;
  EXPECT_THAT(log.out, HasSubstr("megatron_cpu.log: 0.2666 s, predicted"));
  ASSERT_EQ(workplace.run(plan + "1 --data 2 -o one.json").exit_code, 0);
  EXPECT_THAT(workplace.run("trivium calibrate -o fitted.json one.json " + sample("megatron_cpu.log")).err,
              HasSubstr("ran with tensor 2, its plan says 1"));
}

TEST(Calibrate, ARunOfAnotherKindOfDeviceIsNamed) {
  const Workplace workplace;
  workplace.write("text.txt", std::string(2000, 'a'));
  ASSERT_EQ(workplace
                .run("trivium run --model gpt-tiny --cluster this-machine --ranks 1 --global-batch 1 --steps 1 "
                     "--corpus text.txt --record run.json")
                .exit_code,
            0);
  const Outcome outcome = workplace.run("trivium calibrate run.json --base dgx-h100-80gb -o fitted.json");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("error: run.json: a \"cpu-threads\" run says nothing about "));
}

TEST(Calibrate, CutAndStrangeFilesAreRefusedByName) {
  const Workplace workplace;
  workplace.write("cut.sqlite", "SQLite format 3 and nothing else");
  workplace.write("page.txt", "It was a dark and stormy night.");
  const std::string command = "trivium calibrate --base dgx-h100-80gb -o fitted.json ";
  const Outcome cut = workplace.run(command + "cut.sqlite");
  EXPECT_EQ(cut.exit_code, 3);
  EXPECT_THAT(cut.err, HasSubstr("cut.sqlite: "));
  const Outcome strange = workplace.run(command + "page.txt");
  EXPECT_EQ(strange.exit_code, 3);
  EXPECT_THAT(strange.err, HasSubstr("page.txt: is nothing that is known"));
  const Outcome cores = workplace.run("trivium calibrate --base generic-cpu -o fitted.json " + sample("topo_h100.txt"));
  EXPECT_EQ(cores.exit_code, 3);
  EXPECT_THAT(cores.err, HasSubstr("says nothing about cpu-core"));
}

// An interrupt while the plans of the tables are still being lowered is no fault of the tables'. That takes a while,
// and the signal comes when it begins; a fit that ended before the shell had its turn proves nothing and is made again.
TEST(Calibrate, AnInterruptIsToldAsOne) {
  const Workplace place;
  Outcome outcome;
  for (int attempt = 0; attempt < 10 && outcome.exit_code == 0; ++attempt) {
    outcome = place.run("trivium calibrate --runs " TRIVIUM_SOURCE_DIR
                        "/validation/runs/vtrain_single.csv -o fitted >out & p=$!; await $p 'asked_by_signals $p'; "
                        "kill -INT $p; wait $p");
  }
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("error: interrupted"));
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("no run of tier")));
}

}  // namespace
}  // namespace trivium::cli
