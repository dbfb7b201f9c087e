#include "calibration/certainty/scales.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "calibration/validate/validate.h"
#include "hardware_profiles/load.h"
#include "models/load.h"

namespace trivium::calibration {
namespace {

/// A run that takes what is predicted of a machine whose devices reach `scale` of their rates.
PublishedRun run_of(const std::string& source, const std::string& machine, double scale, int micro_batch) {
  PublishedRun run;
  run.source = source;
  run.hardware = machine;
  run.tier = "A";
  run.job.model = models::load_model("gpt3-1.3b");
  run.job.training.global_batch = 64, run.job.training.sequence = 2048;
  run.job.plan.data = 8;
  run.job.plan.micro_batch = micro_batch;
  run.job.plan.precision = program::DType::kBf16;
  run.cluster = hardware::load_cluster("dgx-a100-80gb:1");
  const double shipped = run.cluster.groups.front().node.device.compute_scale;
  run.cluster.groups.front().node.device.compute_scale = scale;
  run.iteration_s = predicted_iteration_s(run).value();
  run.cluster.groups.front().node.device.compute_scale = shipped;
  return run;
}

std::vector<PublishedRun> runs_of(const std::string& source, const std::string& machine, double scale) {
  std::vector<PublishedRun> runs;
  for (const int micro_batch : {1, 2, 4, 8, 8}) runs.push_back(run_of(source, machine, scale, micro_batch));
  return runs;
}

const MachineRuns& of(const std::vector<MachineRuns>& all, const std::string& machine, const std::string& publisher) {
  return *std::find_if(all.begin(), all.end(),
                       [&](const MachineRuns& m) { return m.machine == machine && m.publisher == publisher; });
}

TEST(Scales, VersionsOfASourceAreOnePublisher) {
  EXPECT_EQ(publisher_of("MLPerf Training v5.1 results"), "MLPerf Training");
  EXPECT_EQ(publisher_of("vTrain (MICRO 2024)"), "vTrain (MICRO 2024)");
  EXPECT_EQ(publisher_of("A very long source"), "A very long source");
}

// Who measured the same machine says more than who measured another; who is alone on a device leaves nothing behind.
TEST(Scales, AreThoseOfOthersWhereAPublisherIsLeftOut) {
  std::vector<PublishedRun> runs;
  for (const auto& some : {runs_of("P v1", "here", 0.8), runs_of("P v2", "here", 0.8), runs_of("Q", "here", 0.6),
                           runs_of("R", "there", 0.9)}) {
    runs.insert(runs.end(), some.begin(), some.end());
  }
  const std::vector<MachineRuns> all = leave_out_scales(runs);
  ASSERT_EQ(all.size(), 3u);
  const MachineRuns &p = of(all, "here", "P"), &q = of(all, "here", "Q"), &r = of(all, "there", "R");
  EXPECT_EQ(p.runs, 10);
  EXPECT_NEAR(p.best, 0.8, 0.002);
  EXPECT_NEAR(q.best, 0.6, 0.002);
  EXPECT_NEAR(p.left_out, 0.6, 0.002);
  EXPECT_NEAR(q.left_out, 0.8, 0.002);
  EXPECT_NEAR(r.left_out, std::sqrt(0.8 * 0.6), 0.002);
  EXPECT_EQ(r.others, 2);
  EXPECT_GT(p.left_bias, 0.2);
  EXPECT_LT(q.left_bias, -0.1);
  EXPECT_NEAR(p.left_mean, p.left_bias, 1e-9);

  const std::vector<MachineRuns> alone = leave_out_scales(runs_of("R", "there", 0.9));
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone.front().others, 0);
  EXPECT_EQ(alone.front().left_out, 0);
}

TEST(Scales, AreNotAskedOfWhoHasFourRuns) {
  std::vector<PublishedRun> runs = runs_of("P", "here", 0.8), few = runs_of("Q", "here", 0.6);
  runs.insert(runs.end(), few.begin(), few.end() - 1);
  const std::vector<MachineRuns> all = leave_out_scales(runs);
  EXPECT_EQ(of(all, "here", "P").others, 0);
  EXPECT_EQ(of(all, "here", "Q").others, 1);
}

TEST(Scales, OfRunsThatKeepDevicesIdleAreNotAsked) {
  PublishedRun run = run_of("P", "here", 0.8, 1);
  run.job.training.global_batch = 8, run.job.training.sequence = 16;  // eight tokens a layer: all is launches
  EXPECT_TRUE(leave_out_scales({run}).empty());
  run = run_of("P", "here", 0.8, 1);
  run.tier = "C";
  EXPECT_TRUE(leave_out_scales({run}).empty());
}

}  // namespace
}  // namespace trivium::calibration
