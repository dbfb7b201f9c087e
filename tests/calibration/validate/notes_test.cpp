// What notes of a table of today's runs say of the plan.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "calibration/measurements/published_row.h"
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

}  // namespace
}  // namespace trivium::calibration
