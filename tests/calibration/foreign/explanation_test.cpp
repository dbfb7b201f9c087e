// Whole traces against plans: some made, some recorded (tests/data/README.md).
#include "calibration/foreign/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/plan/job_json.h"
#include "tests/calibration/foreign/made_trace.h"
#include "tests/calibration/samples.h"
#include "tests/input_error.h"

namespace trivium::calibration::foreign {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::vector<std::string> recorded(const std::string& variant) {
  return {sample_path("foreign/" + variant + "-rank0.pt.trace.json.gz"),
          sample_path("foreign/" + variant + "-rank1.pt.trace.json.gz")};
}

hardware::Cluster two_cores() {
  hardware::Node node = hardware::load_cluster("generic-cpu:1").groups.front().node;
  node.devices = 2;
  node.device.memory = base::Bytes(4e9);
  node.host_memory = base::Bytes(8e9);
  return {"two cores", {{node, 1}}};
}

program::Job told_job(const ForeignRun& run) {
  program::Job job;
  job.model = models::load_model(std::string(TRIVIUM_SOURCE_DIR) + "/tests/foreign/llama-10m.json");
  for (const auto& [field, text] : told_fields(run)) program::set_field(job.plan, job.training, field, text);
  return job;
}

Explanation explained(const std::string& variant) {
  const ForeignRun run = read_foreign(recorded(variant));
  return explain_foreign(run, told_job(run), two_cores());
}

const Finding* finding(const Explanation& explanation, const std::string& words) {
  for (const Finding& each : explanation.findings) {
    if (each.what.find(words) != std::string::npos) return &each;
  }
  return nullptr;
}

double count_of(const Explanation& explanation, const std::string& op) {
  for (const OpRow& row : explanation.ops) {
    if (row.op == op) return row.count;
  }
  return 0;
}

TEST(ToldFields, AreTheJobThatWasRecorded) {
  const auto fields = told_fields(read_foreign(recorded("plain")));
  const std::map<std::string, std::string> expected{{"tensor", "1"},      {"pipeline", "1"},   {"context", "1"},
                                                    {"data", "2"},        {"zero_stage", "3"}, {"precision", "fp32"},
                                                    {"micro_batch", "4"}, {"sequence", "256"}, {"global_batch", "8"}};
  EXPECT_EQ(fields, expected);
}

// Four layers: q, k, v and gate, up are products of their own, each with two gradients.
TEST(ExplainForeign, MatchesEveryProductOfARecordedLlama) {
  const Explanation plain = explained("plain");
  EXPECT_GE(plain.matched_share, .95);
  EXPECT_EQ(plain.ranks, 2);
  EXPECT_EQ(plain.steps, 2);
  for (const char* direction : {"", "_dgrad", "_wgrad"}) {
    EXPECT_DOUBLE_EQ(count_of(plain, std::string("qkv") + direction), 12) << direction;
    EXPECT_DOUBLE_EQ(count_of(plain, std::string("attention_out") + direction), 4) << direction;
    EXPECT_DOUBLE_EQ(count_of(plain, std::string("fc1") + direction), 8) << direction;
    EXPECT_DOUBLE_EQ(count_of(plain, std::string("fc2") + direction), 4) << direction;
    EXPECT_DOUBLE_EQ(count_of(plain, std::string("head") + direction), 1) << direction;
  }
  EXPECT_DOUBLE_EQ(count_of(plain, "all_gather"), 9);  // five units, of which the root is not gathered again
  EXPECT_DOUBLE_EQ(count_of(plain, "reduce_scatter"), 5);
  EXPECT_EQ(finding(plain, "unfused"), nullptr);
}

TEST(ExplainForeign, NamesTheRankThatWasSlowed) {
  const Explanation slow = explained("slow-rank");
  EXPECT_GE(slow.matched_share, .95);
  const Finding* rank = finding(slow, "rank 1 is slow");
  ASSERT_NE(rank, nullptr);
  EXPECT_EQ(rank, slow.findings.data());  // the worst
  EXPECT_EQ(rank->rank, 1);
  // fc2's data gradient has the same shape, once: (32 + 4) of (8 + 4) calls.
  EXPECT_THAT(rank->what, HasSubstr("fc1, which it runs 3.0 times as often"));
  EXPECT_EQ(finding(slow, "rank 0 is slow"), nullptr);
}

TEST(ExplainForeign, NamesTheAttentionThatWasUnfused) {
  const Explanation unfused = explained("unfused");
  EXPECT_GE(unfused.matched_share, .95);
  const Finding* attention = finding(unfused, "attention runs unfused");
  ASSERT_NE(attention, nullptr);
  EXPECT_GT(attention->seconds, .05);
  EXPECT_THAT(attention->remedy, HasSubstr("scaled_dot_product_attention"));
}

/// Of tests/foreign/job.py: a smaller llama, three iterations.
Explanation explained_job(const std::string& name) {
  const ForeignRun run = read_foreign(recorded(name));
  program::Job job;
  job.model = models::load_model(std::string(TRIVIUM_SOURCE_DIR) + "/tests/foreign/llama-5m.json");
  for (const auto& [field, text] : told_fields(run)) program::set_field(job.plan, job.training, field, text);
  return explain_foreign(run, job, two_cores());
}

// FSDP2 waits inside aten::pow and linalg_vector_norm of DTensors: the rank that waits is not the slow one.
TEST(ExplainForeign, WaitsInsideOperatorsAreNoWork) {
  const Explanation slow = explained_job("fsdp2-other");
  EXPECT_EQ(slow.steps, 3);
  ASSERT_FALSE(slow.findings.empty());
  EXPECT_EQ(slow.findings[0].cause, "other_work");
  EXPECT_EQ(slow.findings[0].rank, 1);
}

TEST(ExplainForeign, NamesTheStageThatHasOtherWork) {
  const Explanation slow = explained_job("pp-other");
  ASSERT_FALSE(slow.findings.empty());
  EXPECT_EQ(slow.findings[0].cause, "other_work");
  EXPECT_EQ(slow.findings[0].rank, 1);
  EXPECT_THAT(slow.findings[0].what, HasSubstr("(384, 384) x (384, 384)"));
}

// The script sleeps 0.12 s before the forward.
TEST(ExplainForeign, NamesTheStageWhoseLoaderStalls) {
  const Explanation slow = explained_job("pp-loader");
  ASSERT_FALSE(slow.findings.empty());
  EXPECT_EQ(slow.findings[0].cause, "loader");
  EXPECT_EQ(slow.findings[0].rank, 0);
  EXPECT_NEAR(slow.findings[0].seconds, .12, .036);
}

TEST(ExplainForeign, LayersThatAreNotThePlansComeFirst) {
  const Explanation uneven = explained_job("pp-uneven");
  ASSERT_FALSE(uneven.findings.empty());
  EXPECT_EQ(uneven.findings[0].cause, "stage_imbalance");
  EXPECT_EQ(uneven.findings[0].rank, 0);
  EXPECT_THAT(uneven.findings[0].what, HasSubstr("1.5 times the plan's layers"));
}

TEST(ExplainForeign, WinsNoMoreThanTheIteration) {
  for (const char* variant : {"plain", "slow-rank", "unfused"}) {
    const Explanation explanation = explained(variant);
    double sum = 0;
    for (const Finding& each : explanation.findings) sum += each.seconds;
    EXPECT_LE(explanation.winnable_s, explanation.measured_s) << variant;
    EXPECT_NEAR(explanation.winnable_s, sum, 1e-9) << variant;
    const nlohmann::json json = to_json(explanation);
    EXPECT_EQ(json.at("schema"), "trivium.trace-explanation/1");
    for (const char* key : {"matched_share", "iteration_s", "ops", "findings", "winnable_s"})
      EXPECT_TRUE(json.contains(key));
  }
}

TEST(ExplainForeign, ALogSaysHowLongIterationsTookWithoutAProfiler) {
  std::vector<std::string> files = recorded("plain");
  files.push_back(sample_path("megatron.log"));
  const ForeignRun run = read_foreign(files);
  const Explanation explanation = explain_foreign(run, told_job(read_foreign(recorded("plain"))), two_cores());
  EXPECT_DOUBLE_EQ(explanation.measured_s, 3.01);
  EXPECT_NE(explanation.traced_s, explanation.measured_s);
}

TEST(ExplainForeign, RefusesTracesOfAnotherJob) {
  const ForeignRun run = read_foreign(recorded("plain"));
  program::Job job = told_job(run);
  job.plan.data = 1;
  EXPECT_THAT(input_error([&] { explain_foreign(run, job, two_cores()); }),
              HasSubstr("plain-rank0.pt.trace.json.gz: is of a run with 2 ranks, the plan has 1"));
  job = told_job(run);
  job.plan.micro_batch = 1;
  EXPECT_THAT(input_error([&] { explain_foreign(run, job, two_cores()); }),
              HasSubstr("whose micro-batches have 256 tokens on a rank"));
}

// A few kernels of somebody's example, without shapes: every one could be the plan's.
TEST(ExplainForeign, RefusesAFragment) {
  MadeTrace made(0, 2);
  for (int i = 0; i < 3; ++i) {
    made.step(i, 1e6 * i, 1e6 * i + 9e5).op("aten::mm", 1e6 * i, 1e6 * i + 5).kernel("gemm", 1e6 * i + 5, 1e6 * i + 50);
  }
  ForeignRun run;
  run.traces.push_back(made.read());
  const program::Job job = told_job(read_foreign(recorded("plain")));
  EXPECT_THAT(input_error([&] { explain_foreign(run, job, two_cores()); }), HasSubstr("is of another job"));
}

std::string written(const std::string& name, const std::string& content) {
  const std::string path = (std::filesystem::path(testing::TempDir()) / name).string();
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

TEST(ForeignFiles, AreRefusedByName) {
  const std::string gpu = MadeTrace(3, 8).op("aten::mm", 0, 1).kernel("gemm", 1, 2).text();
  EXPECT_THAT(input_error([&] { read_foreign({written("a.txt", "hello")}); }), HasSubstr("a.txt: is no trace"));
  EXPECT_THAT(input_error([&] { read_foreign({written("b.json", "")}); }), HasSubstr("b.json: is empty"));
  EXPECT_THAT(input_error([&] {
                read_foreign({written("c.json", gpu), written("d.json", gpu)});
              }),
              HasSubstr("d.json: is of rank 3, as another trace is"));
  EXPECT_THAT(input_error([&] { read_foreign({sample_path("megatron.log")}); }), HasSubstr("is a log"));
  EXPECT_THAT(input_error([&] { told_fields(read_foreign({sample_path("nsight.sqlite")})); }),
              HasSubstr("does not tell how many ranks ran"));
  std::string odd = gpu;
  odd.replace(odd.find("\"cat\":\"kernel\""), 14, "\"cat\":\"cernel\"");
  EXPECT_NO_THROW(read_foreign({written("e.json", odd)}));  // operators are there
}

TEST(ForeignFiles, OneProcessThatCommunicatesWithNoneIsTheWholeJob) {
  auto document = nlohmann::json::parse(MadeTrace(0, 1)
                                            .op("aten::embedding", 0, 1, {{64, 8}, {2, 16}})
                                            .kernel("gather", 1, 2)
                                            .op("aten::mm", 3, 4, {{32, 8}, {8, 8}})
                                            .kernel("gemm", 4, 9)
                                            .text());
  document.erase("distributedInfo");
  const auto fields = told_fields(read_foreign({written("one.json", document.dump())}));
  EXPECT_EQ(fields.at("data"), "1");
  EXPECT_EQ(fields.at("micro_batch"), "2");
  EXPECT_EQ(fields.at("sequence"), "16");
}

TEST(ForeignFiles, AnExportOfNsightIsARankForEveryProcessAtWork) {
  const ForeignRun run = read_foreign({sample_path("nsight.sqlite")});
  ASSERT_EQ(run.traces.size(), 1U);  // the helper's one kernel is no rank
  EXPECT_EQ(run.traces[0].kernels.size(), 180U);
  EXPECT_THAT(run.traces[0].names, Contains(HasSubstr("sm90_xmma_gemm")));
  EXPECT_EQ(run.traces[0].marked.size(), 2U);
  EXPECT_EQ(run.traces[0].name_of(run.traces[0].operators.at(0)), "iteration 3");
}

// Cut anywhere, a trace is read as far as it goes or refused in words.
TEST(ForeignFiles, CutTracesNeverBreakAnything) {
  MadeTrace made(0, 2);
  for (int i = 0; i < 3; ++i) {
    made.step(i, 100 * i, 100 * i + 99);
    made.op("aten::mm", 100 * i, 100 * i + 1, {{8, 4}, {4, 8}}).kernel("gemm", 100 * i, 100 * i + 30);
    made.collective("allreduce", 100 * i + 30, 100 * i + 60);
  }
  const std::string whole = made.text();
  const std::string path = (std::filesystem::path(testing::TempDir()) / "cut.json").string();
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, length);
    try {
      told_fields(read_foreign({path}));
    } catch (const base::Failure& failure) {
      EXPECT_THAT(failure.what(), HasSubstr("cut.json"));
    }
  }
}

}  // namespace
}  // namespace trivium::calibration::foreign
