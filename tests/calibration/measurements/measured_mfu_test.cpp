// The table of the best measured MFUs is what the published runs say.
#include "hardware_profiles/measured_mfu.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "calibration/measurements/published_runs.h"
#include "calibration/validate/predict_on.h"
#include "simulator/predict/simulate.h"

namespace trivium::calibration {
namespace {

double measured_mfu(const PublishedRun& run) {
  const double flops = simulator::iteration_flops(run.job).model;
  return flops / (run.iteration_s * run.job.plan.ranks() * simulator::peak_flops(run.job.plan, run.cluster));
}

TEST(MeasuredMfu, HoldsTheBestPublishedRunOfEveryDeviceAndAttention) {
  struct Best {
    double mfu = 0, error = 0;
    std::string file, run;
  };
  std::map<std::pair<std::string, bool>, std::pair<Best, PublishedRun>> best;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(TRIVIUM_SOURCE_DIR) / "validation" / "runs")) {
    for (const PublishedRun& run : read_published_runs(entry.path())) {
      if (run.tier == "C") continue;  // digitised, or with an unknown setting
      const bool flash = run.job.plan.attention == program::Attention::kFlash;
      auto& [known, kept] = best[{run.cluster.groups.front().node.device.name, flash}];
      const double mfu = measured_mfu(run);
      if (mfu <= known.mfu) continue;
      known = {mfu, 0, entry.path().filename().string(), run.case_name};
      kept = run;
    }
  }
  const std::vector<hardware::MeasuredMfu> table = hardware::measured_mfu();
  EXPECT_EQ(table.size(), best.size());
  for (const auto& [key, found] : best) {
    SCOPED_TRACE(key.first);
    const hardware::MeasuredMfu* entry = hardware::best_measured(table, key.first, key.second);
    ASSERT_NE(entry, nullptr);
    EXPECT_NEAR(entry->mfu, found.first.mfu, 0.0006);
    EXPECT_EQ(entry->runs, found.first.file);
    EXPECT_EQ(entry->run, found.first.run);
    EXPECT_EQ(entry->source, found.second.source);
    const PublishedRun& run = found.second;
    const double predicted = predict_on(run.job, run.cluster, run.cluster.groups.front().node).value_or_throw();
    EXPECT_NEAR(entry->error, predicted / found.second.iteration_s - 1, 0.01);
  }
}

}  // namespace
}  // namespace trivium::calibration
