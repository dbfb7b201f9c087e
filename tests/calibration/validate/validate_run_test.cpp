#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "calibration/validate/validate.h"
#include "program/lower/lower.h"
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
  for (const ValidationGroup& group : result.groups) {
    EXPECT_NEAR(group.bias, group.by == "memory" ? 0 : -0.5, 1e-6) << group.by << " " << group.name;
  }
}

TEST(ValidateRun, ComparesStepsOpsLanesRanksAndMemoryWorstFirst) {
  const program::Job job = small_job(2, 1, 1, 2);
  hardware::Node slow = rated_node(1);
  slow.device.op_rates.at("matmul").seconds_per_flop *= 3;
  const Validation result = validate_run({job, {}}, synthetic_run(job, slow), cluster_of(rated_node(1)));
  for (const char* by : {"step", "op", "lane", "rank", "memory"}) {
    EXPECT_GT(std::ranges::count(result.groups, by, &ValidationGroup::by), 0) << by;
  }
  const auto first = std::ranges::find(result.groups, "op", &ValidationGroup::by);
  EXPECT_EQ(first->name, "matmul");
  EXPECT_LT(first->predicted, first->measured);
  EXPECT_FALSE(result.points.empty());
  ASSERT_TRUE(result.timelines);
  EXPECT_EQ(result.timelines->predicted.size(), result.timelines->measured.size());
}

// Rank 1 comes 300 us late to one all-reduce and rank 0 is woken 50 us after it is over: both are waiting, and the
// all-reduce itself is as long as predicted.
TEST(ValidateRun, LateHostsAreNotAnErrorOfTheCollective) {
  const hardware::Node node = rated_node(1);
  const program::Job job = small_job(2, 1, 1, 8);
  program::RunRecord record = synthetic_run(job, node);
  const Validation before = validate_run({job, {}}, record, cluster_of(node));
  const auto error_of = [](const Validation& v, const char* name) {
    return std::ranges::find(v.groups, std::string(name), &ValidationGroup::name)->mape;
  };
  ASSERT_NEAR(error_of(before, "all_reduce"), 0, 1e-9);
  const auto program = std::get<program::Program>(program::lower(job));
  for (program::Event& event : record.timeline.events) {
    const program::Task& task = program.role_of(event.rank).tasks[static_cast<std::size_t>(event.task)];
    const program::Op& op = program.body_of(task).ops[static_cast<std::size_t>(event.op)];
    if (op.kind != program::OpKind::kAllReduce) continue;
    if (event.rank == 0) {
      event.start_ps -= 300'000'000;
      event.wait_ps += 300'000'000;
      event.end_ps += 50'000'000;
    }
  }
  const Validation after = validate_run({job, {}}, record, cluster_of(node));
  EXPECT_NEAR(error_of(after, "all_reduce"), 0, 1e-9);
  const auto wait = std::ranges::find(after.groups, "wait", &ValidationGroup::by);
  ASSERT_NE(wait, after.groups.end());
  EXPECT_GT(wait->measured, wait->predicted);
}

// Eight ranks on two cores: every rank is simulated, and each is compared with its own events.
TEST(ValidateRun, RanksThatShareCores) {
  const hardware::Node node = rated_node(1);
  const program::Job job = small_job(1, 1, 4, 1);
  hardware::Node four = node;
  four.devices = 4;
  const Validation result = validate_run({job, {}}, synthetic_run(job, four), cluster_of(node));
  EXPECT_FALSE(result.rows.front().unsupported);
  EXPECT_GT(result.rows.front().error, .5);  // half the cores: about twice the time
  EXPECT_EQ(std::ranges::count(result.groups, "rank", &ValidationGroup::by), 4);
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
  node.device.peak.erase(hardware::Arithmetic::kFp32);
  const Validation result = validate_run({job, {}}, record, cluster_of(node));
  EXPECT_EQ(result.rows.front().unsupported, "cpu-core has no fp32 arithmetic");
}

TEST(ValidateRun, RefusesARecordWithoutSteps) {
  const hardware::Node node = rated_node(1);
  const program::Job job = small_job(2, 1, 1, 2);
  program::RunRecord record = synthetic_run(job, node);
  record.steps.clear();
  EXPECT_THROW(validate_run({job, {}}, record, cluster_of(node)), base::Failure);
}

}  // namespace
}  // namespace trivium::calibration
