// One run in a screen, and a plan against another trainer's log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibration/measurements/training_log.h"
#include "calibration/validate/groups.h"
#include "calibration/validate/validate.h"
#include "tests/calibration/synthetic_run.h"

namespace trivium::calibration {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ValidationGroup one(const char* by, const std::string& name, double measured, double predicted) {
  const Pair pair{measured, predicted};
  return group_of(by, name, std::span(&pair, 1));
}

// Steps of those seconds, predicted at one second.
Validation run_of(const std::vector<double>& steps) {
  Validation run;
  ValidationRow row;
  row.case_name = "small";
  row.hardware = "node";
  row.measured_iteration_s = median(steps);
  row.predicted_iteration_s = 1;
  row.error = 1 / row.measured_iteration_s - 1;
  run.rows.push_back(row);
  for (std::size_t i = 0; i < steps.size(); ++i) run.groups.push_back(one("step", std::to_string(i), steps[i], 1));
  run.groups.push_back(one("op", "matmul", 0.5, 0.75));
  run.groups.push_back(one("op", "norm", 0.001, 0.002));
  return run;
}

TEST(RunTable, SaysTheErrorFirstAndKeepsSmallOpsBehindVerbose) {
  const Validation run = run_of({0.8, 0.81, 0.79, 0.8, 0.8});
  const std::string text = to_table(run);
  EXPECT_THAT(text, HasSubstr("small, node\n\n  measured    800 ms a step, the median of 5"));
  EXPECT_THAT(text, HasSubstr("predicted   1.00 s, +25.0 %"));
  EXPECT_THAT(text, HasSubstr("matmul"));
  EXPECT_THAT(text, HasSubstr("+50.0 %"));
  EXPECT_THAT(text, Not(HasSubstr("norm")));
  EXPECT_THAT(text, HasSubstr("1 more kinds of ops, 0.2 % of the work"));
  EXPECT_THAT(text, Not(HasSubstr("noise")));
  EXPECT_THAT(to_table(run, Detail::kAll), HasSubstr("norm"));
}

TEST(RunTable, DoesNotBlameThePredictionForTheMachinesOwnNoise) {
  const std::string text = to_table(run_of({0.6, 0.8, 0.8, 0.9, 1.2}));
  EXPECT_THAT(text, HasSubstr("8 of 10 steps differ by 50 % of the median"));
  EXPECT_THAT(text, HasSubstr("-7.4 % as well as +47.1 %"));  // 1 / 1.08, 1 / .68
}

TEST(ValidateLog, ComparesTheTypicalIterationAndTheMemory) {
  imports::TrainingLog log;
  log.file = "train.log";
  log.trainer = "Megatron-LM";
  log.iteration_s = {9, 9, 9, 9, 9, 2, 2.1, 1.9};
  log.peak_bytes = 1e9;
  const program::PlanFile plan{small_job(2, 1, 1, 2), {}};
  const Validation result = validate_log(plan, log, cluster_of(rated_node(1)));
  const ValidationRow& row = result.rows.at(0);
  EXPECT_FALSE(row.unsupported) << *row.unsupported;
  EXPECT_DOUBLE_EQ(row.measured_iteration_s, 2.05);
  EXPECT_DOUBLE_EQ(row.error, row.predicted_iteration_s / 2.05 - 1);
  EXPECT_EQ(row.source, "log of Megatron-LM");
  EXPECT_EQ(result.groups.size(), 4u);  // of eight, the first half at most is warm-up
  EXPECT_EQ(row.measured_peak_bytes, 1e9);
}

// What a log prints is what PyTorch's allocator gave out.
TEST(ValidateLog, LeavesWhatTheDeviceReservesOutOfThePeak) {
  imports::TrainingLog log;
  log.iteration_s = {1, 1};
  const program::PlanFile plan{small_job(2, 1, 1, 2), {}};
  hardware::Cluster cluster = cluster_of(rated_node(1));
  cluster.groups.front().node.device.reserved = base::Bytes(0);
  const double bare = *validate_log(plan, log, cluster).rows.at(0).predicted_peak_bytes;
  cluster.groups.front().node.device.reserved = base::Bytes(1e9);
  EXPECT_EQ(validate_log(plan, log, cluster).rows.at(0).predicted_peak_bytes, bare);
}

TEST(ValidateLog, RefusesTheLogOfAnotherBatch) {
  imports::TrainingLog log;
  log.file = "train.log";
  log.iteration_s = {1, 1};
  log.global_batch = 12345;
  const program::PlanFile plan{small_job(2, 1, 1, 2), {}};
  EXPECT_ANY_THROW(validate_log(plan, log, cluster_of(rated_node(1))));
}

}  // namespace
}  // namespace trivium::calibration
