// A plan's promised MFU compared with what was measured.
#include "planner/advice/measured.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware_profiles/load.h"
#include "models/load.h"

namespace trivium::planner {
namespace {

using testing::HasSubstr;

std::vector<hardware::MeasuredMfu> table() {
  return {{"a100-sxm-80gb", false, false, "16 bits", 0.5, "a run", 0.021, "Somebody 2022", "runs.csv", "A"},
          {"v100-sxm-32gb", false, false, "16 bits", 0.4, "another run", -0.013, "Somebody 2020", "runs.csv", "V"}};
}

program::Job job(int ranks) {
  program::Job job;
  job.model = models::load_model("gpt3-2.7b");
  job.training.sequence = 2048;
  job.training.global_batch = 64;
  job.plan.data = ranks;
  job.plan.precision = program::DType::kFp16;
  return job;
}

simulator::Simulation with_mfu(double mfu) {
  simulator::Simulation s;
  s.iteration_s = 10;
  s.mfu = mfu;
  s.breakdown_s[static_cast<std::size_t>(simulator::Part::kCompute)] = 8;
  s.breakdown_s[static_cast<std::size_t>(simulator::Part::kBubble)] = 1.5;
  s.breakdown_s[static_cast<std::size_t>(simulator::Part::kExposedData)] = 0.5;
  return s;
}

TEST(Plausibility, AboveAnythingMeasuredSaysByHowMuchAndWhy) {
  const auto promise = plausibility_of(job(8), hardware::load_cluster("dgx-a100-80gb:1"), with_mfu(0.52), table());
  ASSERT_TRUE(promise.has_value());
  EXPECT_TRUE(promise->above);
  EXPECT_DOUBLE_EQ(promise->measured, 0.5);
  for (const char* part : {"MFU 52.0 % lies 2.0 points above the published runs in validation/ of dense models in "
                           "16 bits on a100-sxm-80gb with unfused attention",
                           "50.0 % (a run; Somebody 2022)", "it recomputes nothing", "bubble 15.0 %",
                           "exposed communication 5.0 %", "replays that run 2.1 % too slow"}) {
    EXPECT_THAT(promise->words, HasSubstr(part));
  }
}

TEST(Plausibility, BelowItNamesTheBest) {
  const auto promise = plausibility_of(job(8), hardware::load_cluster("dgx-a100-80gb:1"), with_mfu(0.49), table());
  ASSERT_TRUE(promise.has_value());
  EXPECT_FALSE(promise->above);
  EXPECT_THAT(
      promise->words,
      HasSubstr("below the best of the published runs in validation/ of dense models in 16 bits on a100-sxm-80gb"));
}

// Eight A100s have 8 x 312 TFLOP/s, eight V100s 8 x 125: (312 * .5 + 125 * .4) / 437 = .4714.
TEST(Plausibility, UnlikeDevicesCountByTheirPeak) {
  const auto cluster = hardware::load_cluster("dgx-a100-80gb:1+dgx1-v100-32gb:1");
  const auto promise = plausibility_of(job(16), cluster, with_mfu(0.48), table());
  ASSERT_TRUE(promise.has_value());
  EXPECT_NEAR(promise->measured, 0.4714, 1e-4);
  EXPECT_TRUE(promise->above);
}

TEST(Plausibility, NothingIsSaidWhereNothingWasMeasured) {
  const auto cluster = hardware::load_cluster("dgx-a100-80gb:1");
  program::Job flash = job(8);
  flash.plan.attention = program::Attention::kFlash;
  EXPECT_FALSE(plausibility_of(flash, cluster, with_mfu(0.9), table()).has_value());
  program::Job fp32 = job(8);
  fp32.plan.precision = program::DType::kFp32;
  EXPECT_FALSE(plausibility_of(fp32, cluster, with_mfu(0.9), table()).has_value());
  EXPECT_FALSE(plausibility_of(job(8), hardware::load_cluster("dgx-h100-80gb:1"), with_mfu(0.9), table()).has_value());
}

// The same job in 10 s that took 12 s: a fifth more tokens a second and device.
TEST(PublishedRun, OfTheSameJobIsNamedAndTheGainSaid) {
  program::Job same = job(8);
  const models::Model& model = same.model;
  hardware::MeasuredRun run{
      "a100-sxm-80gb", "16 bits",     model.layers, model.hidden, model.heads,    0, 2048, 64, 8, 12,
      -0.05,           "TP1 PP1 DP8", "CASE-1",     "runs.csv",   "Somebody 2024"};
  hardware::MeasuredRun faster_elsewhere = run;
  faster_elsewhere.devices = 16;
  faster_elsewhere.iteration_s = 1;
  simulator::Simulation simulated = with_mfu(0.5);
  simulated.tokens_per_s = 64 * 2048 / 10.0;
  const auto cluster = hardware::load_cluster("dgx-a100-80gb:1");
  const std::string text = same_model_text(same, cluster, simulated, {faster_elsewhere, run});
  for (const char* part : {"CASE-1 (Somebody 2024), same job: 12.0 s with TP1 PP1 DP8", "simulated as 11.4 s",
                           "promises 20.0 % more tokens a second and device"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(same_model_text(same, cluster, simulated, {faster_elsewhere}), HasSubstr("16 devices, batch 64 x 2048"));
  const std::string smaller = same_model_text(same, hardware::load_cluster("dgx-a100-40gb:1"), simulated, {run});
  EXPECT_THAT(smaller, HasSubstr("on a100-sxm-80gb: CASE-1"));
  EXPECT_EQ(same_model_text(same, hardware::load_cluster("dgx-h100-80gb:1"), simulated, {run}), "");
  run.hidden += 1;
  EXPECT_EQ(same_model_text(same, cluster, simulated, {run}), "");
}

}  // namespace
}  // namespace trivium::planner
