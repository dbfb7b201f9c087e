// Fits to a few small rows: quick, and enough to see that what is fitted goes where it belongs.
#include "calibration/published/published_fit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "calibration/measurements/published_runs.h"
#include "calibration/published/profile_patch.h"
#include "calibration/validate/predict_on.h"
#include "hardware_profiles/load.h"

namespace trivium::calibration {
namespace {

namespace fs = std::filesystem;

/// A machine that is in truth `scale` times as fast as its prior: measured times are the program's own.
std::vector<PublishedRun> runs_of(double scale) {
  std::string text;
  for (const std::string& column : published_columns()) text += (text.empty() ? "" : ",") + column;
  for (const char* batch : {"8", "16", "32"}) {
    text += std::string("\nM-") + batch + ",source,dgx-a100-40gb,megatron,1,8,4,4096,32,1024,51200," + batch +
            ",8,1,1,1,1,no,0,full,fp16,unfused,,,1,,A,";
  }
  const CsvTable table(text + "\n", "runs.csv");
  std::vector<PublishedRun> runs;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    runs.push_back(read_published_run(table.row(i)));
    hardware::Node node = runs.back().cluster.groups.front().node;
    node.device.physics = {};
    for (const FitConstant& constant : fit_constants({node})) constant.set(node, constant.prior.prior);
    node.device.compute_scale = scale;
    runs.back().iteration_s = predict_on(runs.back().job, runs.back().cluster, node).value_or_throw();
  }
  return runs;
}

double value_of(const PublishedFit& fit, const std::string& name) {
  for (std::size_t i = 0; i < fit.constants.size(); ++i) {
    if (fit.constants[i].prior.name == name) return fit.fit.values[i];
  }
  ADD_FAILURE() << name;
  return 0;
}

TEST(PublishedFit, FindsTheScaleOfAMachine) {
  const PublishedFit fit = fit_published(runs_of(0.9), {});
  EXPECT_EQ(fit.rows, 3);
  EXPECT_LT(fit.sources.at(0).fitted.mape, 0.02);
  EXPECT_NEAR(value_of(fit, "dgx-a100-40gb compute_scale"), 0.9, 0.04);
  EXPECT_NEAR(value_of(fit, "flash_forward"), 0.53, 1e-9);  // no run speaks of it
  EXPECT_NE(to_table(fit).find("undetermined"), std::string::npos);
}

TEST(PublishedFit, LeavesOutTierC) {
  std::vector<PublishedRun> runs = runs_of(1);
  runs[0].tier = "C";
  EXPECT_EQ(fit_published(runs, {}).rows, 2);
  for (PublishedRun& run : runs) run.tier = "C";
  EXPECT_THROW((void)fit_published(runs, {}), base::Failure);
}

TEST(ProfilePatch, WritesProfilesThatLoadWithTheFittedConstants) {
  const fs::path folder = fs::path(testing::TempDir()) / "fitted profiles";
  const PublishedFit fit = fit_published(runs_of(0.9), {});
  const std::vector<fs::path> files = write_profiles(fit, folder);
  EXPECT_EQ(files.front(), folder / "dgx-a100-40gb.json");
  const hardware::Node node = hardware::load_node((folder / "dgx-a100-40gb.json").string());
  EXPECT_NEAR(node.device.compute_scale, value_of(fit, "dgx-a100-40gb compute_scale"), 1e-4);
  EXPECT_NE(node.sources.at("/device/compute_scale").find("3 published runs"), std::string::npos);
  const auto device = nlohmann::json::parse(base::read_file(folder / "devices" / "a100-sxm-80gb.json"));
  EXPECT_DOUBLE_EQ(device.at("physics").at("flash_forward").get<double>(), 0.53);
}

TEST(ProfilePatch, NeverOverwritesWhatItFits) {
  const PublishedFit fit = fit_published(runs_of(1), {.leave_one_out = false});
  EXPECT_THROW(write_profiles(fit, base::shipped_data("hardware_profiles")), base::Failure);
}

}  // namespace
}  // namespace trivium::calibration
