#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "calibration/validate.h"
#include "edge/error.h"
#include "tests/calibration/synthetic_run.h"

namespace trivium::calibration {
namespace {

using ::testing::HasSubstr;

TEST(ValidateRun, AMachineThatDoesWhatIsPredictedHasNoError) {
  for (const program::Job& job : {small_job(2, 1, 1, 2), small_job(1, 2, 1, 1), small_job(1, 1, 2, 4)}) {
    const hardware::Node node = rated_node(1);
    const Validation result = validate_run({job, {}}, synthetic_run(job, node), cluster_of(node));
    ASSERT_EQ(result.rows.size(), 1u);
    const ValidationRow& row = result.rows.front();
    EXPECT_FALSE(row.unsupported);
    EXPECT_NEAR(row.error, 0, 1e-12);
    EXPECT_EQ(row.measured_peak_bytes, row.predicted_peak_bytes);
    // Times are whole picoseconds: sums of thousands of ops agree to 1e-9.
    for (const ValidationGroup& group : result.groups) EXPECT_LT(group.max, 1e-9) << group.by << " " << group.name;
    EXPECT_EQ(std::ranges::count(result.groups, "rank", &ValidationGroup::by), 2);
    EXPECT_GT(std::ranges::count(result.groups, "op", &ValidationGroup::by), 15);
  }
}

// On a machine with half the speed everything takes twice as long: predictions are 50 % low, each kind and each rank.
TEST(ValidateRun, ErrorsArePredictedOverMeasured) {
  const program::Job job = small_job(2, 1, 1, 2);
  const Validation result = validate_run({job, {}}, synthetic_run(job, rated_node(2)), cluster_of(rated_node(1)));
  EXPECT_NEAR(result.rows.front().error, -0.5, 1e-6);
  for (const ValidationGroup& group : result.groups) EXPECT_NEAR(group.bias, -0.5, 1e-6) << group.name;
}

TEST(ValidateRun, SaysWhenTheRunWasOfAnotherProgram) {
  const hardware::Node node = rated_node(1);
  const program::Job ran = small_job(1, 1, 2, 4), asked = small_job(2, 1, 1, 2);
  const Validation result = validate_run({asked, {}}, synthetic_run(ran, node), cluster_of(node));
  EXPECT_THAT(result.rows.front().source, HasSubstr("another Program"));
  EXPECT_EQ(std::ranges::count(result.groups, "rank", &ValidationGroup::by), 0);
  EXPECT_GT(std::ranges::count(result.groups, "op", &ValidationGroup::by), 0);
}

TEST(ValidateRun, AClusterThatCannotRunThePlanIsAReasonNotAFailure) {
  hardware::Node node = rated_node(1);
  const program::Job job = small_job(2, 1, 1, 2);
  const program::RunRecord record = synthetic_run(job, node);
  node.devices = 1;
  const Validation result = validate_run({job, {}}, record, cluster_of(node));
  EXPECT_EQ(result.rows.front().unsupported, "the plan has 2 ranks, the cluster 1 devices");
}

TEST(ValidateRun, RefusesARecordWithoutSteps) {
  const hardware::Node node = rated_node(1);
  const program::Job job = small_job(2, 1, 1, 2);
  program::RunRecord record = synthetic_run(job, node);
  record.steps.clear();
  EXPECT_THROW(validate_run({job, {}}, record, cluster_of(node)), edge::Failure);
}

}  // namespace
}  // namespace trivium::calibration
