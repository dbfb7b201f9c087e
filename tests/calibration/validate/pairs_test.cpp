// The effect of one choice, between published runs.
#include "calibration/validate/pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calibration/measurements/csv.h"

namespace trivium::calibration {
namespace {

/// Runs of Llama 3 8B on one DGX H100, read from lines as tables have them, with predictions for each.
struct Table {
  std::vector<PublishedRun> runs;
  std::vector<ValidationRow> rows;

  /// Batch, micro-batch, tensor, pipeline and replicas are `split`; columns after the software's are `precision`.
  void add(const std::string& name, const std::string& sequence, const std::string& split, const std::string& precision,
           double measured, double predicted, const std::string& version = "25.04") {
    std::string text;
    for (const std::string& column : published_columns()) text += column + ",";
    text += "model,kv_heads,head_dim,ffn,gated_mlp,fp8_recipe,task,software_version\n";
    const std::string scale = precision == "fp8" ? "current-scaling" : "";
    text += name + ",s,dgx-h100,megatron-nemo2,8,8,32,4096,32," + sequence + ",128256," + split + ",yes,1,none," +
            precision + ",flash,yes,," + std::to_string(measured) + ",,A,,llama3-8b,8,128,14336,yes," + scale +
            ",pretrain," + version + "\n";
    runs.push_back(read_published_run(CsvTable(text, "runs.csv").row(0)));
    ValidationRow row;
    row.tier = "A";
    row.case_name = name;
    row.measured_iteration_s = measured;
    row.predicted_iteration_s = predicted;
    rows.push_back(row);
  }
};

// Batch 128 of 8,192 tokens, micro-batch 1: two tensor ranks with four replicas, or two stages in their place.
constexpr const char* kTensor = "128,1,2,1,1,4";
constexpr const char* kPipeline = "128,1,1,2,1,4";

TEST(Pairs, DifferInOneSetting) {
  Table table;
  table.add("wide", "8192", kTensor, "bf16", 10, 10);
  table.add("narrow", "8192", kTensor, "fp8", 8, 8.6);
  table.add("stages", "8192", kPipeline, "bf16", 9, 11);
  table.add("both", "8192", kPipeline, "fp8", 7, 7);  // of "wide" it differs in two
  ASSERT_FALSE(table.runs[0].unsupported.has_value()) << *table.runs[0].unsupported;
  const std::vector<PairOfRuns> pairs = find_pairs(table.runs, table.rows);
  ASSERT_EQ(pairs.size(), 4U);  // precision of two splits, split of two precisions
  // 8 / 10 - 1 = -20 % measured, 8.6 / 10 - 1 = -14 % predicted: 6 points apart.
  const auto precision = std::ranges::find(pairs, "wide", &PairOfRuns::first);
  EXPECT_EQ(precision->setting, "precision");
  EXPECT_EQ(precision->from, "bf16");
  EXPECT_EQ(precision->to, "current");
  EXPECT_NEAR(precision->measured, -0.2, 1e-9);
  EXPECT_NEAR(precision->predicted, -0.14, 1e-9);
  EXPECT_TRUE(precision->sign_right());
  EXPECT_FALSE(precision->within_5_points());
  // bf16: stages take 9 / 10 - 1 = -10 % and are predicted to take 10 % more; fp8: 7 / 8 - 1 = -13 and -19 %.
  const std::vector<PairSummary> summary = summarise(pairs);
  ASSERT_EQ(summary.size(), 3U);
  EXPECT_EQ(summary[1].setting, "tensor against pipeline");
  EXPECT_EQ(summary[1].pairs, 2);
  EXPECT_EQ(summary[1].sign_right, 1);
  EXPECT_EQ(summary[2].setting, "all");
  EXPECT_EQ(summary[2].with_sign, 4);
  EXPECT_EQ(summary[2].sign_right, 3);
}

// Runs that took 1,000 s are below 10 % of MFU; other editions of the software are not compared; repeats count once.
TEST(Pairs, AreOfOneSoftwareAndOfWellUsedMachines) {
  Table table;
  table.add("wide", "8192", kTensor, "bf16", 10, 10);
  table.add("later", "8192", kTensor, "fp8", 8, 8, "25.07");
  table.add("slow", "8192", kTensor, "fp8", 1000, 8);
  EXPECT_TRUE(find_pairs(table.runs, table.rows).empty());
  EXPECT_EQ(to_table(find_pairs(table.runs, table.rows)), "no two runs differ in one setting\n");
  table.add("fast", "8192", kTensor, "fp8", 8, 8);
  table.add("faster", "8192", kTensor, "fp8", 6, 8);
  const std::vector<PairOfRuns> pairs = find_pairs(table.runs, table.rows);
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_NEAR(pairs[0].measured, 7.0 / 10 - 1, 1e-9);  // the median of 6 and 8 s
}

// Twice the sequence with half the batch: the same tokens.
TEST(Pairs, OfSequencesCompareTokens) {
  Table table;
  table.add("short", "4096", "256,2,2,1,1,4", "bf16", 10, 10);
  table.add("long", "8192", "128,2,2,1,1,4", "bf16", 12.5, 12);
  const std::vector<PairOfRuns> pairs = find_pairs(table.runs, table.rows);
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].setting, "sequence");
  EXPECT_EQ(pairs[0].from, "4096");
  EXPECT_NEAR(pairs[0].measured, 0.25, 1e-9);
  nlohmann::json json;
  add_pairs(json, pairs);
  EXPECT_EQ(json.at("pairs").size(), 1U);
  EXPECT_EQ(json.at("pair_settings").back().at("setting"), "all");
}

}  // namespace
}  // namespace trivium::calibration
