// Whoever lays out spans for nobody ends at the next look at the stop token. What is shorter than the steps between two
// looks passes, however soon the stop was asked for: it is the loops themselves that look.
#include <gtest/gtest.h>

#include "base/cancellation_point.h"
#include "calibration/measurements/run_events.h"
#include "calibration/validate/validate.h"
#include "gui/timeline/spans/critical_path.h"
#include "gui/timeline/spans/program_spans.h"
#include "gui/timeline/spans/run_comparison.h"
#include "tests/calibration/synthetic_run.h"
#include "tests/gui/timeline/made_spans.h"

namespace trivium::gui {
namespace {

constexpr std::int64_t kFew = base::CancellationPoint::kStepsBetweenLooks / 16,
                       kMany = base::CancellationPoint::kStepsBetweenLooks;

std::stop_token stopped() {
  std::stop_source stop;
  stop.request_stop();
  return stop.get_token();
}

/// Whether `work` was given up because it was asked to stop.
template <class Work>
bool gives_up(const Work& work) {
  try {
    work();
  } catch (const base::Failure& failure) {
    return failure.error().kind == base::ErrorKind::kInterrupted;
  }
  return false;
}

/// Spans of one lane, one after the other.
StoreBuilder lane_of(std::int64_t spans) {
  StoreBuilder builder;
  NewSpan span;
  span.row = builder.add_row(builder.add_row(kNoRow, RowKind::kDevice, "rank 0", 0), RowKind::kLane, "compute", 0);
  span.category = builder.category(Category::kForward);
  for (std::int64_t s = 0; s < spans; ++s) {
    span.start_ps = 10 * s;
    span.end_ps = 10 * s + 10;
    builder.add(span);
  }
  return builder;
}

TEST(Stop, EndsTheLayoutOfSpans) {
  EXPECT_FALSE(gives_up([] { lane_of(kFew).build(stopped()); }));
  EXPECT_TRUE(gives_up([] { lane_of(kMany).build(stopped()); }));
  EXPECT_FALSE(gives_up([] { lane_of(kMany).build(); }));
}

TEST(Stop, EndsTheWalkAlongTheCriticalPath) {
  const auto few = lane_of(kFew).build(), many = lane_of(kMany).build();
  EXPECT_FALSE(gives_up([&] { critical_path(*few, stopped()); }));
  EXPECT_TRUE(gives_up([&] { critical_path(*many, stopped()); }));
}

class StoppedRun : public testing::Test {
 protected:
  StoppedRun()
      : job(calibration::small_job(1, 2, 1, 2)),
        node(calibration::rated_node(1)),
        cluster(calibration::cluster_of(node)),
        record(calibration::synthetic_run(job, node)),
        program(calibration::program_of(record)) {}

  /// A record whose timeline says the same over and over.
  program::RunRecord long_record() const {
    program::RunRecord longer = record;
    while (longer.timeline.events.size() <= kMany) {
      const std::vector<program::Event> all = longer.timeline.events;
      longer.timeline.events.insert(longer.timeline.events.end(), all.begin(), all.end());
    }
    return longer;
  }

  program::Job job;
  hardware::Node node;
  hardware::Cluster cluster;
  program::RunRecord record;
  program::Program program;
};

TEST_F(StoppedRun, EndsTheSpansOfAProgram) {
  program::Timeline few;
  few.events.assign(record.timeline.events.begin(), record.timeline.events.begin() + kFew);
  EXPECT_FALSE(gives_up([&] { spans_of(program, few, nullptr, stopped()); }));
  EXPECT_TRUE(gives_up([&] { spans_of(program, long_record().timeline, nullptr, stopped()); }));
}

TEST_F(StoppedRun, EndsTheReadingOfEvents) {
  EXPECT_FALSE(gives_up([&] { calibration::op_events(program, long_record()); }));
  EXPECT_TRUE(gives_up([&] { calibration::op_events(program, long_record(), stopped()); }));
}

TEST_F(StoppedRun, EndsComparisonAndValidationWithoutAResult) {
  const program::PlanFile plan{job, "synthetic"};
  EXPECT_FALSE(gives_up([&] { compare_run(plan, cluster, record); }));
  EXPECT_TRUE(gives_up([&] { compare_run(plan, cluster, record, -1, stopped()); }));
  EXPECT_FALSE(gives_up([&] { calibration::validate_run(plan, record, cluster); }));
  EXPECT_TRUE(gives_up([&] { calibration::validate_run(plan, record, cluster, stopped()); }));
}

}  // namespace
}  // namespace trivium::gui
