#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "calibration/validate/validate.h"
#include "tests/calibration/synthetic_run.h"

namespace trivium::calibration {
namespace {

using ::testing::HasSubstr;

Validation example() {
  Validation v;
  ValidationRow good;
  good.case_name = "small";
  good.source = "paper";
  good.hardware = "node";
  good.tier = "A";
  good.measured_iteration_s = 2;
  good.predicted_iteration_s = 2.1;
  good.error = 0.05;
  ValidationRow worse = good, missing = good;
  worse.case_name = "worse";
  worse.error = -0.25;
  worse.measured_peak_bytes = 1024.0 * 1024 * 1024;
  missing.case_name = "missing";
  missing.unsupported = "no such thing";
  v.rows = {good, worse, missing};
  v.groups = {{"source", "paper", 2, 0.15, -0.1, 0.15, 0.25, 1}};
  v.sweeps.emplace_back();
  v.sweeps[0].name = "sweep";
  v.sweeps[0].plans = 3;
  v.sweeps[0].regret = 0.02;
  return v;
}

TEST(ValidationReport, JsonHasTheKeysOfItsSchema) {
  const nlohmann::json json = to_json(example());
  EXPECT_EQ(json.at("schema"), "trivium.validation/1");
  for (const char* key : {"case", "source", "hardware", "tier", "measured_iteration_s", "predicted_iteration_s",
                          "error", "measured_peak_bytes", "predicted_peak_bytes", "unsupported"}) {
    EXPECT_TRUE(json.at("rows").at(0).contains(key)) << key;
  }
  EXPECT_EQ(json.at("rows").size(), 3u);
  EXPECT_TRUE(json.at("rows").at(0).at("unsupported").is_null());
  EXPECT_TRUE(json.at("rows").at(0).at("measured_peak_bytes").is_null());
  EXPECT_EQ(json.at("rows").at(2).at("unsupported"), "no such thing");
  EXPECT_DOUBLE_EQ(json.at("groups").at(0).at("mape").get<double>(), 0.15);
  EXPECT_DOUBLE_EQ(json.at("sweeps").at(0).at("regret").get<double>(), 0.02);
}

TEST(ValidationReport, TheTableShowsTheWorstFirstAndWhatIsMissing) {
  const std::string text = to_table(example());
  EXPECT_LT(text.find("worse, node"), text.find("small, node"));
  EXPECT_THAT(text, HasSubstr("-25.0"));
  EXPECT_THAT(text, HasSubstr("not replayed: 1\n  missing: no such thing"));
}

TEST(CsvReport, HasALineForEveryRowAndGroup) {
  const program::Job job = small_job(2, 1, 1, 2);
  const Validation result = validate_run({job, {}}, synthetic_run(job, rated_node(2)), cluster_of(rated_node(1)));
  const std::string csv = to_csv(result);
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(csv, '\n')), 1 + result.rows.size() + result.groups.size());
  EXPECT_THAT(csv, HasSubstr("\nop,matmul,"));
  EXPECT_THAT(csv, HasSubstr("row,\"small, TP2"));
  const std::string header = csv.substr(0, csv.find('\n'));
  std::size_t begin = csv.find("\nop,matmul,") + 1;
  const std::string line = csv.substr(begin, csv.find('\n', begin) - begin);
  EXPECT_EQ(std::ranges::count(line, ','), std::ranges::count(header, ','));
}

}  // namespace
}  // namespace trivium::calibration
