// Inputs that would take all memory, all time, or be taken for what they are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <zlib.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/process.h"
#include "tests/sanitized.h"

namespace trivium::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class Bounds : public ::testing::Test {
 protected:
  /// Limits of a line of shell: 10 s of a core, as a busy machine takes longer by the clock, and 2 minutes for what
  /// waits.
  static std::string briefly(const std::string& line) { return "ulimit -t 10; timeout 120 " + line; }
  /// Runs a line so and with 1.5 GiB; it must be refused with the code and these words in one line of error.
  void refused(const std::string& line, int code, const std::string& words) {
    const Outcome outcome = place_.run(kMemory + briefly(line));
    EXPECT_EQ(outcome.exit_code, code) << line << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << line;
    for (const char* foreign : {"json.exception", "map::at", "stoi", "std::", "basic_string", "vector::"}) {
      EXPECT_THAT(outcome.err, Not(HasSubstr(foreign))) << line;
    }
  }
  Workplace place_;
  /// The shadow of a sanitizer takes terabytes of addresses.
  const std::string kMemory = kSanitized ? "" : "ulimit -v 1572864; ";
};

TEST_F(Bounds, WhatIsNoRegularFileIsRefusedByEveryReader) {
  ASSERT_EQ(place_.run("mkfifo pipe").exit_code, 0);
  for (const char* file : {"pipe", "/dev/zero", "/dev/full"}) {
    const std::string f = file, words = f + ": cannot read: it is a pipe or a device";
    refused("trivium simulate " + f, 3, words);
    refused("trivium plan --model " + f + " --cluster dgx-a100-80gb:1 --global-batch 8", 3, "");
    refused("trivium calibrate " + f + " -o x.json", 3, words);
    refused("trivium import " + f + " --cluster dgx-a100-80gb:1", 3, words);
    refused("trivium validate --runs " + f, 3, words);
    refused("trivium tokenize " + f + " -o t.bin", 3, words);
  }
  refused("trivium simulate - </dev/null", 3, "-: not valid JSON");  // standard input by its name
}

TEST_F(Bounds, InputsBeyondTheLimitAreRefusedBeforeTheyAreRead) {
  ASSERT_EQ(place_.run("truncate -s 3G big.json").exit_code, 0);
  refused("trivium simulate big.json", 3, "it is larger than 1.00 GiB; --max-input SIZE allows more");
  ASSERT_EQ(place_.run("truncate -s 2000 small.json").exit_code, 0);
  refused("trivium simulate small.json --max-input 1kB", 3, "it is larger than 1000 B");
  refused("trivium simulate small.json --max-input many", 2, "--max-input");
  // A document that takes many times the memory of its text.
  std::string zeros = "[";
  for (int i = 0; i < 1 << 20; ++i) zeros += "0,";
  place_.write("zeros.json", zeros + "0]");
  refused("trivium simulate zeros.json --max-input 16MiB", 3, "read into memory it is larger than 16.0 MiB");
}

TEST_F(Bounds, APackedTraceUnpacksToTheLimitAndNoFurther) {
  const std::string block(1 << 20, ' ');
  const gzFile file = gzopen((place_.folder() / "work" / "bomb.gz").c_str(), "wb9");
  for (int i = 0; i < 64; ++i) gzwrite(file, block.data(), static_cast<unsigned>(block.size()));
  gzclose(file);
  refused("trivium calibrate bomb.gz -o x.json --max-input 16MiB", 3,
          "bomb.gz: unpacks to more than 16.0 MiB; --max-input SIZE allows more");
}

TEST_F(Bounds, VariablesOfAScriptThatDoubleAreRefused) {
  std::string script = "A=xx\n";
  for (int i = 0; i < 40; ++i) script += "A=$A$A\n";
  place_.write("bomb.sh", script + "python pretrain.py --lr $A\n");
  refused("trivium import bomb.sh --model gpt2-124m --cluster dgx-a100-80gb:2", 3,
          "bomb.sh:23: its variables grow beyond");
}

TEST_F(Bounds, AnImportOfNothingIsNoPlan) {
  place_.write("empty.txt", "");
  place_.write("hello.txt", "hello\n");
  for (const char* name : {"empty.txt", "hello.txt"}) {
    refused(std::string("trivium import ") + name + " --model gpt2-124m --cluster dgx-a100-80gb:2", 3,
            std::string(name) + ": no argument of a trainer is in it");
  }
  for (const char* size : {"-1", "0.5", "18446744073709551616", "0"}) {
    place_.write("ds.json", std::string(R"({"zero_optimization": {"stage": 1, "reduce_bucket_size": )") + size + "}}");
    refused("trivium import ds.json --model gpt2-124m --cluster dgx-a100-80gb:2", 3,
            "ds.json#/zero_optimization/reduce_bucket_size: must be a whole number from 1");
  }
  place_.write("ds.json", R"({"zero_optimization": {"stage": 1, "reduce_bucket_size": 5e8}})");
  EXPECT_EQ(place_.run("trivium import ds.json --model gpt2-124m --cluster dgx-a100-80gb:2").exit_code, 0);
}

TEST_F(Bounds, AnImportWritesNoPlanThatCannotBeRead) {
  place_.write("ds.json", R"({"train_batch_size": 16, "gradient_clipping": -1})");
  refused("trivium import ds.json --model gpt2-124m --cluster dgx-a100-80gb:2 -o p.json", 3,
          "error: ds.json: what it says makes no plan: #/training/clip_norm: must not be negative");
  EXPECT_EQ(place_.read("p.json"), "");
}

TEST_F(Bounds, WhatAnImportPassesOverIsToldAsText) {
  place_.write("ds.json", R"({"train_batch_size": 16, "bf\u001b[31m": 1})");
  const Outcome outcome = place_.run("trivium import ds.json --model gpt2-124m --cluster dgx-a100-80gb:2");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("bf\\x1b[31m"));
}

TEST_F(Bounds, AVocabularyThatLacksWhatIsMergedIsNamed) {
  const std::string corpus = TRIVIUM_SOURCE_DIR "/tests/fuzz/corpus/vocabulary/small", text = content_of(corpus);
  place_.write("vocab.json", text.substr(0, text.find('\0')));
  place_.write("merges.txt", "lacks this\n");
  place_.write("text.txt", "A text.\n");
  refused("trivium tokenize text.txt -o t.bin --vocabulary vocab.json --merges merges.txt", 3,
          "merges.txt: line 1: \"lacksthis\" is no token of the vocabulary vocab.json");
}

TEST_F(Bounds, NamesOfAnImportAreCutInItsWarnings) {
  place_.write("launch.sh", "python p.py --num-layers 2 --hidden-size 64 --" + std::string(5000, 'A') + " 3\n");
  const Outcome outcome = place_.run("trivium import launch.sh --model gpt2-124m --cluster dgx-a100-80gb:2");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("warning: \"--AAA"));
  EXPECT_LT(outcome.err.size(), 2000u);
}

TEST_F(Bounds, WhatFitsNoMachineIsToldWithTheFilesItCameFrom) {
  std::string text = content_of(TRIVIUM_SOURCE_DIR "/tests/data/nccl_reduce_scatter.json");
  const std::size_t size = text.find("\"size\":");
  ASSERT_NE(size, std::string::npos);
  for (std::size_t at = size; at != std::string::npos; at = text.find("\"size\":", at + 1)) {
    text.insert(text.find_first_of(",}\n", at), "e14");
  }
  place_.write("wild.json", text);
  refused("trivium calibrate wild.json --base dgx-h100-80gb -o x.json", 3, "error: wild.json");
}

TEST_F(Bounds, AnOptionOfAnotherDeviceIsNotIgnored) {
  refused("trivium profile --quick --like h200", 2, "--like is of a GPU's profile");
}

TEST_F(Bounds, ALoopOfLinksIsAWrongInput) {
  ASSERT_EQ(place_.run("ln -s loop loop").exit_code, 0);
  refused("trivium calibrate --runs " TRIVIUM_SOURCE_DIR "/validation/runs/alpa_v100.csv -o x --micro loop", 3,
          "loop: ");
}

// An endless view in place of a table of Nsight Systems.
TEST_F(Bounds, ADatabaseRunsNothingOfItsOwn) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open((place_.folder() / "work" / "evil.sqlite").c_str(), &database), SQLITE_OK);
  const char* tables =
      "CREATE TABLE StringIds (id INTEGER, value TEXT);"
      "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE r(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM "
      "r)"
      " SELECT start, start AS end, 0 AS deviceId, 1 AS demangledName, 1 AS globalPid FROM r;";
  ASSERT_EQ(sqlite3_exec(database, tables, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  refused("trivium calibrate evil.sqlite --base dgx-h100 -o x.json", 3,
          "\"CUPTI_ACTIVITY_KIND_KERNEL\" is a view, where exports of Nsight Systems have tables");
}

TEST_F(Bounds, MembersOfTheSameNameAndZeroBytesAreRefused) {
  place_.write("twice.json", R"({"schema": "trivium.plan/1", "plan": {"data": 8, "data": 2}})");
  refused("trivium simulate twice.json", 3, "twice.json: the member \"data\" stands there twice; keep one");
  place_.write("zero.json", std::string("{}\0garbage", 10));
  refused("trivium simulate zero.json", 3, "zero.json: not valid JSON at line 1, column 3: a byte that is zero");
}

TEST_F(Bounds, WhatIsWrongIsToldWithItsFileAndOnePointer) {
  ASSERT_EQ(place_.run("trivium plan --model gpt-tiny --cluster this-machine --global-batch 4 -o p.json").exit_code, 0);
  json plan = json::parse(place_.read("p.json"));
  plan["model"]["heads"] = 0;
  place_.write("heads.json", plan.dump());
  refused("trivium simulate heads.json", 3, "heads.json#/model/heads: ");
  json result{{"schema", "trivium.run/1"}, {"plan", plan}};
  place_.write("run.json", result.dump());
  refused("trivium replan run.json", 3, "run.json#/plan/model/heads: ");
  plan["model"] = "gpt9";
  place_.write("gpt9.json", plan.dump());
  refused("trivium simulate gpt9.json", 3, "gpt9.json#/model: unknown model \"gpt9\"");
  place_.write("self.json", "\"self.json\"");
  refused("trivium plan --model gpt-tiny --cluster self.json --global-batch 4", 3, "self.json: names another file");
  place_.write("name.json", "\"dgx-a1000:1\"");
  refused("trivium plan --model gpt-tiny --cluster name.json --global-batch 4", 3, "name.json: ");
}

TEST_F(Bounds, NumbersThatAreNoneAreRefusedByName) {
  refused("trivium sample --checkpoint ck --prompt a --temperature nan", 2,
          "--temperature nan: must be a finite number");
  refused("trivium validate --runs a.csv --max-error inf", 2, "--max-error inf: must be a finite number");
  refused("trivium scale --model gpt-tiny --cluster this-machine --global-batch 4 --devices 0", 2, "not in range 1 to");
  refused("trivium program --model gpt-tiny --cluster this-machine --global-batch 4 --rank x", 2,
          "--rank = x is no number of the kind it takes");
  const std::string job = " --model gpt-tiny --cluster this-machine --global-batch 4 ";
  refused("trivium simulate" + job + "--samples 5", 2, "--samples requires --jitter");
  refused("trivium simulate" + job + "--slow-device 0=2 --slow-device 0=3", 2, "--slow-device: rank 0 is named twice");
  refused("trivium plan" + job + "--allow compression --forbid compression", 2,
          "--allow compression and --forbid compression contradict each other");
  refused("trivium run" + job + "--corpus t --validation ''", 2, "--validation: the name of the file is empty");
  refused("trivium run" + job + "--corpus t --learning-rate 1e-4 --min-learning-rate 1e300", 2,
          "is above the learning rate");
  const Outcome longest = place_.run(
      "trivium plan --model gpt-tiny --cluster this-machine --global-batch 4 --placement " + std::string(3000, 'x'));
  EXPECT_EQ(longest.exit_code, 4);
  EXPECT_LT(longest.err.size(), 600u) << longest.err;
}

TEST_F(Bounds, FailuresWithTinyIntervalsAreDrawnAtOnce) {
  const std::string line = "trivium simulate --model gpt-tiny --cluster this-machine --global-batch 4 --failures ";
  for (const char* more : {"--checkpoint-interval '1 ns'", "--checkpoint-interval '1 ms'", "--mtbf '1 ms'"}) {
    const Outcome outcome = place_.run(briefly(line + more));
    EXPECT_EQ(outcome.exit_code, 0) << more;
    EXPECT_THAT(outcome.out, Not(HasSubstr("nan"))) << more;
  }
}

TEST_F(Bounds, TextThatIsNotUtf8ReachesJsonAndTerminalsAsText) {
  place_.write("esc.json", "{}");
  ASSERT_EQ(place_.run("trivium plan --model gpt-tiny --cluster this-machine --global-batch 4 -o p.json").exit_code, 0);
  json plan = json::parse(place_.read("p.json"));
  plan["model"]["name"] = "\x1b[31mred\x07";
  place_.write("esc.json", plan.dump());
  const Outcome shown = place_.run("trivium simulate esc.json");
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, Not(HasSubstr("\x1b")));
  place_.write("launch.sh", "python p.py --num-layers 2 --strange M\xfcller --hidden-size 64\n");
  const Outcome imported = place_.run("trivium import launch.sh --model gpt2-124m --cluster dgx-a100-80gb:2 --json");
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_FALSE(json::parse(imported.out, nullptr, false).is_discarded());
}

TEST_F(Bounds, WithoutMemoryItIsOneLine) {
  if (kReservesAddresses) GTEST_SKIP() << "this build's sanitizer reserves more addresses than the limits leave";
  const std::string plan =
      "trivium plan --model gpt3-13b --cluster dgx-a100-80gb:16 --global-batch 512 --threads 2 >out";
  for (const int kilobytes : {30000, 45000, 60000, 80000}) {
    const Outcome outcome = place_.run("ulimit -v " + std::to_string(kilobytes) + "; " + plan);
    EXPECT_TRUE(outcome.exit_code == 1 || outcome.exit_code == 0 || outcome.exit_code == 127)
        << kilobytes << ": " << outcome.exit_code << "\n"
        << outcome.err;  // 127: not even the libraries could be loaded
    EXPECT_THAT(outcome.err, Not(HasSubstr("terminate called")));
  }
  // JSON documents allocate while they are destroyed.
  const Outcome large = place_.run(
      "ulimit -v 400000; trivium simulate --model gpt-tiny --cluster dgx-a100-80gb:60000 --global-batch 480000 --data "
      "480000 --json >out");
  EXPECT_EQ(large.exit_code, 1) << large.err;
  EXPECT_EQ(large.err, "error: out of memory on this machine; try a smaller job\n");
}

TEST_F(Bounds, ATopologyOfImpossibleLinksIsRefused) {
  place_.write("topo.txt",
               "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV99999999999\t0-1\nGPU1\tNV99999999999\t X \t0-1\n\nLegend:\n");
  refused("trivium calibrate topo.txt --base dgx-h100 -o x.json", 3, "topo.txt: the row of GPU0 has \"NV99999999999\"");
}

// Comparing all names with all took minutes.
TEST_F(Bounds, AHeaderOfManyTensorsIsReadAtOnce) {
  json header;
  for (int i = 0; i < 60'000; ++i) {
    header["t" + std::to_string(i)] = {{"dtype", "U8"}, {"shape", {0}}, {"data_offsets", {0, 0}}};
  }
  const std::string text = header.dump();
  std::string length(8, '\0');
  for (std::size_t i = 0; i < length.size(); ++i) length[i] = static_cast<char>(text.size() >> (8 * i) & 0xFFU);
  place_.write("many.safetensors", length + text);
  EXPECT_EQ(place_.run(briefly("trivium checkpoint inspect many.safetensors")).exit_code, 0);
  place_.write("twice.safetensors", std::string("\x22\0\0\0\0\0\0\0", 8) + R"({"a": {"dtype": "U8"}, "a": {}}   )");
  refused("trivium checkpoint inspect twice.safetensors", 3, "the member \"a\" stands there twice");
}

// A copy in no time at all would be a link of infinite speed.
TEST_F(Bounds, WhatIsFittedCanBeRead) {
  json events = json::array();
  for (int i = 0; i < 20; ++i) {
    events.push_back({{"ph", "X"},
                      {"cat", "kernel"},
                      {"name", "ampere_sgemm_128x64_tn"},
                      {"ts", 100 * i},
                      {"dur", 50},
                      {"pid", 0},
                      {"tid", 7},
                      {"args", {{"device", 0}}}});
    events.push_back({{"ph", "X"},
                      {"cat", "gpu_memcpy"},
                      {"name", "Memcpy HtoD (Pinned -> Device)"},
                      {"ts", 100 * i + 60},
                      {"dur", i % 2 == 0 ? 1e-320 : 1e-9},
                      {"pid", 0},
                      {"tid", 7},
                      {"args", {{"bytes", 1e308}}}});
  }
  place_.write("trace.json", json{{"traceEvents", events}}.dump());
  const Outcome fitted = place_.run("trivium calibrate trace.json --base dgx-h100-80gb -o fitted.json");
  EXPECT_THAT(place_.read("fitted.json"), Not(HasSubstr("inf ")));
  if (fitted.exit_code == 0) {
    EXPECT_EQ(place_.run("trivium profiles fitted.json").exit_code, 0);
  }
}

TEST_F(Bounds, AManifestWithoutFilesIsRefused) {
  place_.write("text.txt", std::string(4000, 'a'));
  ASSERT_EQ(
      place_
          .run("trivium run --model gpt-tiny --cluster this-machine --global-batch 4 --micro-batch 1 --sequence 32 "
               "--corpus text.txt --steps 1 --checkpoint ck")
          .exit_code,
      0);
  json manifest = json::parse(place_.read("ck/step-00000001/checkpoint.json"));
  const json files = manifest["files"];
  manifest["files"] = json::array();
  place_.write("ck/step-00000001/checkpoint.json", manifest.dump());
  refused("trivium checkpoint convert ck x.safetensors", 3, "checkpoint.json#/files: names no file");
  for (int i = 0; i < 3; ++i) manifest["files"].push_back(files[0]);
  place_.write("ck/step-00000001/checkpoint.json", manifest.dump());
  refused("trivium checkpoint inspect ck", 3, "checkpoint.json#/files/1/name: names the same file twice");
}

}  // namespace
}  // namespace trivium::cli
