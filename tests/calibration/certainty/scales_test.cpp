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
  const std::vector<MachineRuns> all = leave_out_scales(runs, {});
  ASSERT_EQ(all.size(), 3u);
  const MachineRuns &p = of(all, "here", "P"), &q = of(all, "here", "Q"), &r = of(all, "there", "R");
  EXPECT_EQ(p.runs.size(), 10u);
  EXPECT_NEAR(p.best, 0.8, 0.002);
  EXPECT_NEAR(q.best, 0.6, 0.004);
  EXPECT_GT(p.deviation, 0.005);
  EXPECT_LT(p.deviation, q.deviation);  // ten runs tell more than five
  EXPECT_GT(p.left_out, 0.6);
  EXPECT_LT(p.left_out, std::sqrt(0.6 * 0.9));  // nearer to the same machine's
  EXPECT_GT(q.left_out, 0.8);
  EXPECT_LT(q.left_out, std::sqrt(0.8 * 0.9));
  EXPECT_GT(r.left_out, 0.6);
  EXPECT_LT(r.left_out, 0.8);
  EXPECT_EQ(r.others, 2);
  const ScaleErrors errors = errors_of(p);
  EXPECT_GT(errors.left_bias, 0.1);
  EXPECT_LT(errors_of(q).left_bias, -0.1);
  EXPECT_NEAR(errors.left_mean, errors.left_bias, 1e-9);

  const std::vector<PublishedRun> lonely = runs_of("R", "there", 0.9);
  const std::vector<MachineRuns> alone = leave_out_scales(lonely, {});
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_FALSE(alone.front().known());
  EXPECT_EQ(alone.front().left_out, 0);
}

// A run of which the scale explains little says little of the scale, however far it is off.
TEST(Scales, AreToldByTheRunsThatProductsBound) {
  std::vector<PublishedRun> runs = runs_of("P", "here", 0.8);
  for (int i = 0; i < 5; ++i) {
    PublishedRun run = run_of("P", "here", 0.8, 1);
    run.job.training.sequence = 256;  // launches hold it up
    run.iteration_s = 2 * predicted_iteration_s(run).value();
    runs.push_back(run);
  }
  const std::vector<MachineRuns> all = leave_out_scales(runs, {});
  EXPECT_NEAR(all.front().best, 0.8, 0.01);
}

// What products measured by themselves lack of the device's curve, training lacks too.
TEST(Scales, FollowProductsOfTheMachine) {
  std::vector<PublishedRun> runs = runs_of("P", "slow", 0.6);
  for (const PublishedRun& run : runs_of("Q", "usual", 0.8)) runs.push_back(run);
  MicroRow product;
  product.node = hardware::load_node("a100-pcie-80gb");
  product.node.name = "slow";
  product.product = true;
  product.predict = [](const hardware::Node& node) { return 1 / node.device.compute_scale; };
  product.seconds = 1 / 0.75;
  MicroRow collective = product;
  collective.product = false, collective.seconds = 100;
  const std::vector<MachineRuns> all = leave_out_scales(runs, {product, collective});
  const MachineRuns &slow = of(all, "slow", "P"), &usual = of(all, "usual", "Q");
  EXPECT_DOUBLE_EQ(slow.products, 0.75);
  EXPECT_DOUBLE_EQ(usual.products, 1);
  EXPECT_NEAR(slow.left_out, 0.6, 0.005);
  EXPECT_NEAR(usual.left_out, 0.8, 0.005);
}

TEST(Scales, ErrorsAreToldByClass) {
  std::vector<PublishedRun> runs = runs_of("P", "here", 0.8);
  for (const PublishedRun& run : runs_of("Q", "here", 0.6)) runs.push_back(run);
  for (PublishedRun& run : runs) run.cluster.groups.front().node.device.name = "h100-sxm";
  const std::vector<MachineRuns> machines = leave_out_scales(runs, {});
  const std::vector<ScaleErrors> classes = errors_by_class(machines);
  ASSERT_EQ(classes.size(), 3u);
  EXPECT_EQ(classes[0].of, "dense, 16 bits, H100 and H200: P");
  EXPECT_EQ(classes[2].of, "dense, 16 bits, H100 and H200: all");
  EXPECT_EQ(classes[2].runs, 10);
  EXPECT_GT(classes[0].left_bias, 0.1);
  EXPECT_NEAR(classes[2].left_mean, (classes[0].left_mean + classes[1].left_mean) / 2, 1e-9);
}

TEST(Scales, OfRunsThatKeepDevicesIdleAreNotAsked) {
  PublishedRun run = run_of("P", "here", 0.8, 1);
  run.job.training.global_batch = 8, run.job.training.sequence = 16;  // eight tokens a layer: all is launches
  EXPECT_TRUE(leave_out_scales({run}, {}).empty());
  run = run_of("P", "here", 0.8, 1);
  run.tier = "C";
  EXPECT_TRUE(leave_out_scales({run}, {}).empty());
}

}  // namespace
}  // namespace trivium::calibration
