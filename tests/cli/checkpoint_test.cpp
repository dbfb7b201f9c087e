// Checkpoints as a user meets them: going on, stopping, moving, reading.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/process.h"

namespace trivium::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string training(const std::string& more) {
  return "trivium run --model gpt-tiny --cluster this-machine --global-batch 4 --micro-batch 1 --warmup-steps 1 "
         "--sequence 32 --corpus text.txt --json " +
         more;
}

std::vector<double> losses_in(const std::string& text) {
  std::vector<double> losses;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) losses.push_back(json::parse(line).at("loss"));
  return losses;
}

class Checkpoints : public ::testing::Test {
 protected:
  Checkpoints() {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "In the beginning was the Word, and line " + std::to_string(i) + ".\n";
    place_.write("text.txt", text);
  }
  std::vector<double> train(const std::string& more) {
    const Outcome outcome = place_.run(training(more));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    err_ = outcome.err;
    return losses_in(outcome.out);
  }
  Workplace place_;
  std::string err_;
};

TEST_F(Checkpoints, AResumedRunHasTheLossesOfTheWholeOne) {
  const std::vector<double> whole = train("--steps 5 --data 2");
  train("--steps 5 --data 2 --checkpoint ck --checkpoint-every 2 --timeline-steps 0");
  // The last one is of step 5; what was reached after step 4 is there as well.
  ASSERT_EQ(place_.run("rm -r ck/step-00000005 && rm ck/latest").exit_code, 0);
  const std::vector<double> rest = train("--steps 5 --data 2 --checkpoint ck --resume");
  EXPECT_EQ(rest, std::vector<double>(whole.end() - 1, whole.end()));
  EXPECT_THAT(err_, HasSubstr("note: resumed at step 4 from ck/step-00000004"));
  // A pipeline's sums are those of a run that is not split, so it may take over from one; here from replicas.
  ASSERT_EQ(place_.run("rm -r ck/step-00000005").exit_code, 0);
  const std::vector<double> moved = train("--steps 5 --pipeline 2 --checkpoint ck --resume");
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_NEAR(moved.front(), whole.back(), 1e-4);
}

// From a lopsided plan to what its run proposes: the checkpoint goes along, and the losses are those of a run that
// never moved.
TEST_F(Checkpoints, MoveToThePlanThatARunProposes) {
  const std::string lopsided = " --pipeline 2 --stage-layers 1,3 --precision fp64";
  const std::vector<double> whole = train("--steps 6" + lopsided);
  train("--steps 4 --checkpoint ck --record run.json --decay-steps 6" + lopsided);
  const Outcome proposed = place_.run("trivium replan run.json -o better.json");
  ASSERT_EQ(proposed.exit_code, 0) << proposed.err;
  EXPECT_THAT(proposed.out, HasSubstr("proposed"));
  const json plan = json::parse(place_.read("better.json"));
  EXPECT_EQ(plan.at("schema"), "trivium.plan/1");
  EXPECT_EQ(plan.at("plan").at("pipeline"), 2);
  ASSERT_EQ(place_.run("trivium checkpoint convert ck moved --plan better.json").exit_code, 0);
  // What was timed decides which layers moved; so also under a plan that surely differs from the one that ran.
  for (const char* how : {"ck", "moved", "moved --stage-layers 3,1"}) {
    ASSERT_EQ(place_.run("rm -rf */step-00000006 */latest").exit_code, 0);
    const Outcome resumed = place_.run(
        std::string("trivium run better.json --corpus text.txt --json --steps 6 --resume --checkpoint ") + how);
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(losses_in(resumed.out), std::vector<double>(whole.end() - 2, whole.end())) << how;
  }
}

// What a step reads follows from the step alone, also while the batch grows; another ramp would read samples twice. The
// whole run moves its state to a larger batch at step 2, the resumed one reads it from the disk.
TEST_F(Checkpoints, ARampedBatchGoesOnUnderAnotherPlan) {
  const std::string ramp = " --ramp-batch 2 2 2 --precision fp64";  // 2, 2, 4, 4, 4 samples
  const std::vector<double> whole = train("--steps 5" + ramp);
  train("--steps 2 --decay-steps 5 --checkpoint ck" + ramp);
  const Outcome other = place_.run(training("--steps 5 --checkpoint ck --resume --precision fp64"));
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_THAT(other.err, HasSubstr("its 2 steps read 4 samples, with this --ramp-batch they would have read 8"));
  const std::vector<double> rest = train("--steps 5 --pipeline 2 --checkpoint ck --resume" + ramp);
  EXPECT_EQ(rest, std::vector<double>(whole.end() - 3, whole.end()));
}

TEST_F(Checkpoints, AnInterruptedRunSavesAndGoesOn) {
  const Outcome outcome =
      place_.run("(" + training("--steps 1000000 --checkpoint ck --timeline-steps 0") +
                 ") >out.txt & p=$!\n"
                 "await $p '[ $(grep -c loss out.txt) -ge 2 ]'\n"
                 "kill -INT $(cat /proc/$p/task/$p/children | cut -d' ' -f1) 2>/dev/null || kill -INT $p\n"
                 "wait $p");
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("error: interrupted after "));
  EXPECT_THAT(outcome.err, HasSubstr("--resume goes on from there"));
  const auto done = static_cast<std::int64_t>(losses_in(place_.read("out.txt")).size());
  const Outcome seen = place_.run("trivium checkpoint inspect ck --json");
  ASSERT_EQ(seen.exit_code, 0) << seen.err;
  EXPECT_EQ(json::parse(seen.out).at("step"), done);
  EXPECT_EQ(json::parse(seen.out).at("data").at("samples"), 4 * done);
}

TEST_F(Checkpoints, AFullDiskEndsTheRunWithItsReasonAndKeepsTheLastOne) {
  train("--steps 2 --data 2 --checkpoint ck");
  // No file may grow beyond 600 blocks of 512 bytes: the shard finds no room.
  const Outcome outcome =
      place_.run("ulimit -f 600; trap '' XFSZ\n" + training("--steps 4 --data 2 --checkpoint ck --resume"));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("error: rank 0: ck/.step-00000004.tmp/rank-00000.safetensors: cannot write: "
                                     "File too large"));
  const Outcome seen = place_.run("trivium checkpoint inspect ck --json");
  ASSERT_EQ(seen.exit_code, 0) << seen.err;
  EXPECT_EQ(json::parse(seen.out).at("step"), 2);
}

TEST_F(Checkpoints, WithoutResumeAnOldFolderIsNotTouched) {
  train("--steps 1 --checkpoint ck");
  const Outcome outcome = place_.run(training("--steps 1 --checkpoint ck"));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("ck already holds step-00000001; go on with --resume or name another folder"));
}

TEST_F(Checkpoints, ATornOneIsNamedAndTheOneBeforeTaken) {
  train("--steps 2 --checkpoint ck --checkpoint-every 1");
  ASSERT_EQ(place_.run("truncate -s 1000 ck/step-00000002/rank-00000.safetensors").exit_code, 0);
  EXPECT_EQ(train("--steps 2 --checkpoint ck --resume").size(), 1u);
  EXPECT_THAT(err_, HasSubstr("ck/step-00000002/rank-00000.safetensors: torn: 1000 bytes"));
  EXPECT_THAT(err_, HasSubstr("resumed at step 1"));
}

TEST_F(Checkpoints, ConvertedToAnotherPlanItIsTheSame) {
  train("--steps 2 --checkpoint ck");
  const Outcome planned = place_.run(
      "trivium plan --model gpt-tiny --cluster this-machine --ranks 2 --tensor 2 --global-batch 4 --sequence 32 "
      "--precision fp32 -o plan.json");
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const Outcome moved = place_.run("trivium checkpoint convert ck two --plan plan.json");
  ASSERT_EQ(moved.exit_code, 0) << moved.err;
  const json seen = json::parse(place_.run("trivium checkpoint inspect two --json").out);
  EXPECT_EQ(seen.at("files").size(), 2u);
  EXPECT_EQ(seen.at("job").at("plan").at("tensor"), 2);
  EXPECT_EQ(seen.at("step"), 2);
  EXPECT_TRUE(seen.at("moments").get<bool>());
  // And back: the single file is the same byte by byte.
  ASSERT_EQ(place_.run("trivium checkpoint convert ck a/model.safetensors").exit_code, 0);
  ASSERT_EQ(place_.run("trivium checkpoint convert two b/model.safetensors").exit_code, 0);
  EXPECT_EQ(place_.run("cmp a/model.safetensors b/model.safetensors").exit_code, 0);
  const json file = json::parse(place_.run("trivium checkpoint inspect a/model.safetensors --json").out);
  EXPECT_EQ(file.at("tensors").at(0).at("name"), "transformer.wte.weight");
  EXPECT_EQ(file.at("metadata").at("format"), "pt");
  // From there it is a model for others, and for a training that begins at step 0.
  ASSERT_EQ(place_.run("trivium checkpoint convert a/model.safetensors fresh").exit_code, 0);
  EXPECT_EQ(json::parse(place_.run("trivium checkpoint inspect fresh --json").out).at("step"), 0);
  EXPECT_EQ(place_
                .run("trivium checkpoint convert fresh c/model.safetensors && cmp a/model.safetensors "
                     "c/model.safetensors")
                .exit_code,
            0);
  const std::vector<double> tuned = train("--steps 1 --checkpoint fresh --resume");
  const std::vector<double> untrained = train("--steps 1");
  ASSERT_EQ(tuned.size(), 1u);
  EXPECT_LT(tuned.front(), untrained.front());
}

TEST_F(Checkpoints, ModulesOfMultiTokenPredictionAreTakenWhereTheyAreAskedFor) {
  place_.write("moe.json", R"({"schema": "trivium.model/1", "name": "small", "layers": 2, "hidden": 32, "heads": 4,
    "ffn_hidden": 16, "vocab": 256, "max_sequence": 32, "norm": "rms_norm", "positions": "rotary",
    "activation": "swiglu", "linear_bias": false, "qkv_bias": false, "tied_embeddings": false, "mtp": {"depth": 1},
    "experts": {"count": 4, "top_k": 2, "dropless": true, "scores": "sigmoid", "correction_bias": true,
                "shared_hidden": 16, "dense_layers": 1, "dense_hidden": 64}})");
  const Outcome trained = place_.run(
      "trivium run --model moe.json --cluster this-machine --global-batch 2 --corpus text.txt --steps 1 --precision "
      "fp32 --checkpoint ck");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome written = place_.run("trivium checkpoint convert ck theirs/model.safetensors --shard-size 40kB");
  ASSERT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(json::parse(place_.run("cat theirs/config.json").out).at("num_nextn_predict_layers"), 1);
  const json index = json::parse(place_.run("cat theirs/model.safetensors.index.json").out);
  EXPECT_TRUE(index.at("weight_map").contains("model.layers.2.eh_proj.weight"));
  const json seen = json::parse(place_.run("trivium checkpoint inspect theirs --json").out);
  EXPECT_EQ(seen.at("tensors").size(), index.at("weight_map").size());

  const Outcome without = place_.run("trivium checkpoint convert theirs plain");
  ASSERT_EQ(without.exit_code, 0) << without.err;
  EXPECT_EQ(without.err, "note: theirs has a module of multi-token prediction, left out; --mtp 1 takes it\n");
  const Outcome with = place_.run("trivium checkpoint convert theirs/model.safetensors.index.json whole --mtp 1");
  ASSERT_EQ(with.exit_code, 0) << with.err;
  EXPECT_EQ(with.err, "");
  EXPECT_EQ(place_
                .run("trivium checkpoint convert ck a.safetensors && trivium checkpoint convert whole b.safetensors && "
                     "cmp a.safetensors b.safetensors")
                .exit_code,
            0);
  EXPECT_EQ(json::parse(place_.run("trivium checkpoint inspect plain --json").out).at("job").at("model").count("mtp"),
            0u);
  const Outcome two = place_.run("trivium checkpoint convert theirs two --mtp 2");
  EXPECT_EQ(two.exit_code, 3);
  EXPECT_THAT(two.err, HasSubstr("theirs: it has no tensor \"model.layers.3.enorm.weight\""));
}

TEST_F(Checkpoints, AdaptersGoToPeftAndComeBack) {
  train("--steps 1 --checkpoint base");
  ASSERT_EQ(place_.run("trivium checkpoint convert base base.safetensors").exit_code, 0);
  ASSERT_EQ(place_.run("trivium checkpoint convert base.safetensors tuned").exit_code, 0);
  train("--steps 2 --checkpoint tuned --resume --lora-rank 2 --lora-alpha 6 --lora-targets qkv,fc2");
  const Outcome written = place_.run("trivium checkpoint convert tuned mine/adapter_model.safetensors");
  ASSERT_EQ(written.exit_code, 0) << written.err;
  const json config = json::parse(place_.run("cat mine/adapter_config.json").out);
  EXPECT_EQ(config.at("target_modules"), json({"c_attn", "mlp.c_proj"}));
  const Outcome read = place_.run("trivium checkpoint convert base.safetensors again --adapters mine");
  ASSERT_EQ(read.exit_code, 0) << read.err;
  const json lora = json::parse(place_.run("trivium checkpoint inspect again --json").out).at("job").at("training");
  EXPECT_EQ(lora.at("lora_rank"), 2);
  EXPECT_EQ(place_
                .run("trivium checkpoint convert again b/adapter_model.safetensors && "
                     "cmp mine/adapter_model.safetensors b/adapter_model.safetensors && "
                     "trivium checkpoint convert tuned c.safetensors && trivium checkpoint convert again d.safetensors "
                     "&& cmp c.safetensors d.safetensors")
                .exit_code,
            0);
  EXPECT_NE(place_.run("cmp base.safetensors c.safetensors").exit_code, 0);
  // They train on, under the options that they were trained with.
  EXPECT_EQ(train("--steps 1 --checkpoint again --resume --lora-rank 2 --lora-alpha 6 --lora-targets qkv,fc2").size(),
            1u);
}

TEST_F(Checkpoints, OptionsOfOtherProgramsWeightsAreForThese) {
  train("--steps 1 --checkpoint ck");
  const auto refused = [&](const std::string& arguments, const std::string& what) {
    const Outcome outcome = place_.run("trivium checkpoint convert " + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(what)) << arguments;
  };
  refused("ck a.safetensors --mtp 1", "--mtp is for weights of other programs");
  refused("ck a.safetensors --adapters mine", "--adapters is for weights of other programs");
  refused("ck a --shard-size 5GB", "--shard-size is for weights of other programs");
  refused("ck a/model.safetensors.index.json", "the index is written with its shards");
  refused("ck a/adapter_model.safetensors", "there are no adapters to write");
}

TEST_F(Checkpoints, GiveText) {
  train("--steps 3 --checkpoint ck");
  const std::string command = "trivium sample --checkpoint ck --prompt 'In the ' --tokens 8 ";
  const Outcome greedy = place_.run(command + "--temperature 0");
  ASSERT_EQ(greedy.exit_code, 0) << greedy.err;
  EXPECT_EQ(greedy.out.substr(0, 7), "In the ");
  EXPECT_GE(greedy.out.size(), 7u + 8u + 1u);
  EXPECT_EQ(place_.run(command + "--temperature 0").out, greedy.out);
  EXPECT_EQ(place_.run(command + "--seed 4").out, place_.run(command + "--seed 4").out);
  EXPECT_NE(place_.run(command + "--seed 4").out, place_.run(command + "--seed 5").out);
  const Outcome empty = place_.run("trivium sample --checkpoint nowhere --prompt x");
  EXPECT_EQ(empty.exit_code, 3);
  EXPECT_THAT(empty.err, HasSubstr("nowhere: there is no checkpoint here"));
}

}  // namespace
}  // namespace trivium::cli
