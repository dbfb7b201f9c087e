#include "gui/timeline/spans/run_comparison.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "tests/calibration/synthetic_run.h"

namespace trivium::gui {
namespace {

class RunComparisonTest : public testing::Test {
 protected:
  explicit RunComparisonTest(int tensor = 1, int pipeline = 2)
      : job(calibration::small_job(tensor, pipeline, 1, 2)),
        cluster(calibration::cluster_of(calibration::rated_node(1))),
        record(calibration::synthetic_run(job, cluster.groups[0].node)),
        plan{job, "synthetic"} {}

  program::Job job;
  hardware::Cluster cluster;
  program::RunRecord record;
  program::PlanFile plan;
};

std::vector<std::string> lanes_of(const SpanStore& store) {
  std::vector<std::string> names;
  for (const Row& row : store.rows()) {
    if (row.kind == RowKind::kLane) names.push_back(row.name);
  }
  return names;
}

TEST_F(RunComparisonTest, ARunAsPredictedHasNoError) {
  const RunComparison comparison = compare_run(plan, cluster, record);
  EXPECT_EQ(comparison.unmatched, 0U);
  EXPECT_EQ(comparison.predicted_ps, comparison.measured_ps);
  EXPECT_EQ(comparison.steps, (std::vector<int>{0, 1, 2}));
  ASSERT_GT(comparison.ops.size(), 100U);
  for (const MatchedOp& op : comparison.ops) ASSERT_NEAR(op.predicted_s, op.measured_s, 1e-12);
  // Collectives stand on a lane of their own, also where this machine runs them on the compute lane.
  const std::vector<std::string> lanes = lanes_of(*comparison.spans),
                                 rank{"compute predicted",       "compute measured",    "compute error",
                                      "pipeline predicted",      "pipeline measured",   "tied embedding predicted",
                                      "tied embedding measured", "tied embedding error"};
  ASSERT_EQ(lanes.size(), 2 * rank.size());
  EXPECT_TRUE(std::equal(rank.begin(), rank.end(), lanes.begin()));
  EXPECT_TRUE(std::equal(rank.begin(), rank.end(), lanes.begin() + static_cast<std::ptrdiff_t>(rank.size())));
}

TEST_F(RunComparisonTest, AnOpThatTookTwiceAsLongStandsOut) {
  // The last op of step 1 on rank 0 takes twice its time: predicted is half of measured, an error of -50 %.
  const program::Event* late = nullptr;
  for (program::Event& event : record.timeline.events) {
    if (event.step != 1 || event.rank != 0 || event.lane != program::Lane::kCompute || event.wait_ps > 0) continue;
    if (late == nullptr || event.end_ps > late->end_ps) late = &event;
  }
  const std::int64_t length = late->end_ps - late->start_ps;
  const_cast<program::Event*>(late)->end_ps += length;
  const RunComparison comparison = compare_run(plan, cluster, record, 1);
  EXPECT_EQ(comparison.step, 1);
  const auto wrong = std::find_if(comparison.ops.begin(), comparison.ops.end(),
                                  [](const MatchedOp& op) { return op.predicted_s < 0.9 * op.measured_s; });
  ASSERT_NE(wrong, comparison.ops.end());
  EXPECT_EQ(wrong->start_ps, late->start_ps);
  EXPECT_NEAR(wrong->predicted_s / wrong->measured_s, 0.5, 1e-6);
  // Its span of the error lane has that place, that length, the words and the colour.
  const SpanStore& store = *comparison.spans;
  std::int32_t lane = 0;
  while (store.rows()[static_cast<std::size_t>(lane)].name != "compute error") ++lane;
  const std::uint32_t span = store.span_at(store.rows()[static_cast<std::size_t>(lane)].first_track, late->start_ps);
  EXPECT_EQ(store.end_of(span), late->end_ps);
  EXPECT_EQ(store.titles()[store.title_of(span)].substr(0, 8), "−50 % ");
}

TEST_F(RunComparisonTest, ShowsTheStepOfMedianLengthAndNotTheFirst) {
  for (program::Event& event : record.timeline.events) {
    if (event.step == 0) event.end_ps += event.end_ps;  // warming up
    if (event.step == 2) event.end_ps += 1000;
  }
  EXPECT_EQ(compare_run(plan, cluster, record).step, 1);
}

TEST_F(RunComparisonTest, GroupsAddUp) {
  const RunComparison comparison = compare_run(plan, cluster, record);
  double sum = 0, measured = 0;
  for (const MatchedOp& op : comparison.ops) sum += op.measured_s;
  const auto groups = groups_by_kind(comparison, 0, comparison.measured_ps);
  std::size_t ops = 0;
  for (const ComparedGroup& group : groups) {
    measured += group.measured_s;
    ops += group.ops;
    EXPECT_NEAR(group.error(), 0, 1e-6);
    EXPECT_NEAR(group.mape, 0, 1e-6);
  }
  EXPECT_NEAR(measured, sum, 1e-9);
  EXPECT_EQ(ops, comparison.ops.size());
  EXPECT_TRUE(std::is_sorted(groups.begin(), groups.end(), [](const ComparedGroup& a, const ComparedGroup& b) {
    return a.measured_s > b.measured_s;
  }));
  EXPECT_TRUE(groups_by_kind(comparison, comparison.measured_ps + 1, comparison.measured_ps + 2).empty());
}

TEST_F(RunComparisonTest, ARecordOfAnotherPlanIsShownButNotMatched) {
  program::PlanFile other = plan;
  other.job.plan.pipeline = 1;
  other.job.plan.tensor = 2;
  const RunComparison comparison = compare_run(other, cluster, record);
  EXPECT_GT(comparison.unmatched, 100U);
  EXPECT_EQ(comparison.spans->left_out(), 0U);
}

TEST_F(RunComparisonTest, RefusesInWords) {
  program::RunRecord empty = record;
  empty.timeline.events.clear();
  EXPECT_THROW(compare_run(plan, cluster, empty), base::Failure);
  EXPECT_THROW(compare_run(plan, cluster, record, 77), base::Failure);
  program::PlanFile large = plan;
  large.job.plan.data = 64;
  EXPECT_THROW(compare_run(large, cluster, record), base::Failure);
}

TEST(ErrorClass, SplitsAtFiveTwentyAndFiftyPercent) {
  EXPECT_EQ(error_class(-0.6), 0);
  EXPECT_EQ(error_class(-0.3), 1);
  EXPECT_EQ(error_class(-0.06), 2);
  EXPECT_EQ(error_class(0), 3);
  EXPECT_EQ(error_class(0.049), 3);
  EXPECT_EQ(error_class(0.1), 4);
  EXPECT_EQ(error_class(0.3), 5);
  EXPECT_EQ(error_class(4), 6);
  EXPECT_EQ(error_words(3), "within 5 %");
}

}  // namespace
}  // namespace trivium::gui
