// What notes of a table of today's runs say of the plan, and names and columns of the model.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "calibration/measurements/published_row.h"
#include "models/load.h"
#include "program/plan/fields.h"
#include "program/plan/job_json.h"

namespace trivium::calibration {
namespace {

std::string row_of_today(const std::string& line) {
  std::string text;
  for (const std::string& column : published_columns()) text += column + ",";
  return text + "model,kv_heads,head_dim,ffn,gated_mlp,experts,topk,moe_ffn,shared_ffn,dense_layers,cp,ep,etp," +
         "fsdp_shard,fp8_recipe,tp_comm_overlap,task\n" + line + "\n";
}

// Megatron-Bridge's switch, which its tables do not print: of rows that were traced to a recipe a note has it.
TEST(PublishedNote, OverlapsExpertsWhereANoteSaysSo) {
  const auto plan = [](const std::string& note, const std::string& experts) {
    const std::string row = row_of_today(
        "M,s,dgx-h100,megatron-bridge,16,8,32,4096,32,4096,32000,128,1,1,1,1,16,no,1,none,bf16,flash,yes,,5,,A," +
        note + ",mixtral-8x7b,8,128,14336,yes," + experts + ",,,,pretrain");
    return read_published_run(CsvTable(row, "runs.csv").row(0));
  };
  EXPECT_TRUE(plan("recipe X; moe_a2a_overlap=True", "8,2,14336,,,1,8,1").job.plan.overlap.expert);
  EXPECT_FALSE(plan("recipe X", "8,2,14336,,,1,8,1").job.plan.overlap.expert);
  EXPECT_FALSE(plan("recipe X; moe_a2a_overlap=True", "8,2,14336,,,1,1,1").job.plan.overlap.expert);
  EXPECT_NE(plan("recipe X; moe_a2a_overlap=True", "8,2,14336,,,1,8,1").plan,
            plan("recipe X", "8,2,14336,,,1,8,1").plan);
}

// Likewise the modules that Megatron's selective recomputation drops; a table may say so of the mixture itself.
TEST(PublishedNote, RecomputesTheModulesOfItsNote) {
  const auto read = [](const std::string& recompute, const std::string& note) {
    return row_of_today("M,s,dgx-h100,megatron-bridge,16,8,32,4096,32,4096,32000,128,1,1,1,1,16,no,1," + recompute +
                        ",bf16,flash,yes,,5,,A," + note +
                        ",mixtral-8x7b,8,128,14336,yes,8,2,14336,,,1,8,1,,,,pretrain");
  };
  for (const auto& [recompute, note, modules] : std::vector<std::array<std::string, 3>>{
           {"selective", "recipe X; modules:layernorm+moe_act; more", "layernorm,moe_act"},
           {"selective", "modules:moe", "moe"},
           {"selective", "recipe X", ""},
           {"full", "modules:moe", ""},
           {"selective-moe", "recipe X", "moe"}}) {
    const auto plan = read_published_run(CsvTable(read(recompute, note), "runs.csv").row(0)).job.plan;
    EXPECT_EQ(text_of(plan, "recompute_modules"), modules) << recompute << note;
  }
  EXPECT_EQ(read_published_run(CsvTable(read("selective", "modules:mamba"), "runs.csv").row(0)).unsupported,
            "notes: modules that a plan does not recompute by themselves");
}

// Every second layer of Llama 4 Maverick is a mixture: the column counts the others. What is printed of virtual stages
// where there is no pipeline has no meaning.
TEST(PublishedRow, OfLlama4KnowsWhichLayersAreMixtures) {
  const std::string row = row_of_today(
      "M,s,dgx-h100,megatron-nemo2,512,8,48,5120,40,8192,202048,1024,1,4,1,12,128,yes,1,none,bf16,flash,yes,,5,,A,,"
      "llama4-maverick,8,,16384,yes,128,1,8192,8192,24,1,128,4,,,,pretrain");
  const PublishedRun run = read_published_run(CsvTable(row, "runs.csv").row(0));
  EXPECT_EQ(run.unsupported.value_or("none"), "none");
  const program::Job& job = run.job;
  EXPECT_EQ(job.model.experts->every, 2);
  EXPECT_EQ(job.model.experts->dense_layers, 0);
  EXPECT_EQ(job.model.window, models::load_model("llama4-maverick").window);
  EXPECT_EQ(job.plan.virtual_stages, 1);
  EXPECT_EQ(job.plan.expert, 128);
}

// As MLPerf Training v6.0's rows say it: 61 layers on 16 chunks, four on each but the last, which has one, the module
// of multi-token prediction and the loss.
TEST(PublishedNote, OfMlperfLaysOutChunksAndPairsPasses) {
  const std::string notes =
      "\"MTP 1 layer; layout Et*4|(t*4|)*14tmL (16 chunks); HybridEP, 1F1B a2a overlap; recompute modules mlp\"";
  const std::string row = row_of_today(
      "D,s,mlperf-gb200-nvl72,megatron-nemo-mlperf,512,4,61,7168,128,4096,129280,15360,1,2,4,4,64,yes,1,selective,"
      "fp8,flash,yes,,30,,A," +
      notes + ",deepseek-v3,128,,18432,yes,256,8,2048,2048,3,1,32,1,,mxfp8,,pretrain");
  const PublishedRun run = read_published_run(CsvTable(row, "runs.csv").row(0));
  EXPECT_EQ(run.unsupported.value_or("none"), "none");
  std::vector<int> layers(16, 4);
  layers.back() = 1;
  EXPECT_EQ(run.job.plan.stage_layers, layers);
  EXPECT_EQ(run.job.model.mtp_depth(), 1);
  EXPECT_TRUE(run.job.plan.overlap.expert);
  EXPECT_EQ(text_of(run.job.plan, "recompute_modules"), "mlp");
  EXPECT_EQ(run.dispatch, "hybrid");
}

// A layout that is none, or that is endless, is not read.
TEST(PublishedNote, LeavesOutLayoutsThatAreNone) {
  for (const std::string layout : {"(t|", "t)", "t*99999999|L", "((((((((((t))))))))))"}) {
    const std::string row = row_of_today(
        "D,s,dgx-h100,megatron-bridge,8,8,32,4096,32,4096,32000,64,1,1,2,1,4,no,1,none,bf16,flash,yes,,5,,"
        "A,layout " +
        layout + ",llama2-7b,,,11008,yes,,,,,,1,,,,,,pretrain");
    EXPECT_TRUE(read_published_run(CsvTable(row, "runs.csv").row(0)).job.plan.stage_layers.empty()) << layout;
  }
}

// Replicas are what the rest of the split leaves of the devices; without tensor ranks nothing is sequence parallel.
TEST(PublishedRow, FillsInWhatTheSplitSays) {
  const std::string row = row_of_today(
      "D,s,dgx-h100,megatron-bridge,16,8,32,4096,32,4096,32000,64,1,1,2,1,,,1,none,bf16,flash,yes,,5,,A,,"
      "llama2-7b,,,11008,yes,,,,,,1,,,,,,pretrain");
  const PublishedRun run = read_published_run(CsvTable(row, "runs.csv").row(0));
  EXPECT_EQ(run.unsupported.value_or("none"), "none");
  EXPECT_EQ(run.job.plan.data, 8);
  EXPECT_FALSE(run.job.plan.sequence_parallel);
}

// 126 layers fill 128 chunks where embedding and loss count as one each, and have the first and last for themselves.
TEST(PublishedRow, OfTwoChunksMoreThanLayersHasTheEndsAlone) {
  const std::string row = row_of_today(
      "L,s,gb200-nvl72,megatron-bridge,256,4,126,16384,128,8192,128256,1536,1,4,16,8,4,yes,1,none,fp8,flash,yes,,62,,"
      "A,,llama3.1-405b,8,,53248,yes,,,,,,1,,,,mxfp8,,pretrain");
  const PublishedRun run = read_published_run(CsvTable(row, "runs.csv").row(0));
  EXPECT_EQ(run.unsupported.value_or("none"), "none");
  std::vector<int> layers(128, 1);
  layers.front() = layers.back() = 0;
  EXPECT_EQ(run.job.plan.stage_layers, layers);
}

}  // namespace
}  // namespace trivium::calibration
