// What is shown is of the plan and the job that stand there now, or says that it is not.
#include <QSignalSpy>
#include <nlohmann/json.hpp>

#include "tests/calibration/synthetic_run.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;
using testing::Not;

class StaleResults : public Window {
 protected:
  /// A run record that was loaded and is compared.
  void load_run() {
    const program::Job job = calibration::small_job(1, 2, 1, 2);
    write("run.json", program::to_json(calibration::synthetic_run(job, calibration::rated_node(1))).dump());
    window_.resize(1400, 900);
    window_.show();
    ASSERT_TRUE(window_.open(file("run.json")));
    ASSERT_TRUE(settles());
    ASSERT_TRUE(compares());
  }
  bool compares() {
    return QTest::qWaitFor([&] { return !window_.compare().canvas().timelines().empty(); }, kPatienceMs);
  }
  void turn_micro_batch(const QString& to) { choose(window_.plan_controls().plan_control("micro_batch"), to); }
};

// Steps of 9, 4, 5 and 8 s: without the first the median is 5 s. Compare opens with that step and names the median.
TEST_F(StaleResults, CompareAndValidationGiveTheSameMeasuredFigure) {
  const program::Job job = calibration::small_job(1, 2, 1, 2);
  program::RunRecord record = calibration::synthetic_run(job, calibration::rated_node(1));
  ASSERT_EQ(record.steps.size(), 3U);
  record.steps.push_back(record.steps.back());
  const double seconds[] = {9, 4, 5, 8};
  for (std::size_t i = 0; i < 4; ++i) {
    record.steps[i].step = static_cast<std::int64_t>(i);
    record.steps[i].seconds = seconds[i];
  }
  write("run.json", program::to_json(record).dump());
  window_.show();
  ASSERT_TRUE(window_.open(file("run.json")));
  ASSERT_TRUE(settles());
  ASSERT_TRUE(compares());
  window_.validate();
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.validation().validation().has_value(); }, kPatienceMs));
  EXPECT_THAT(plain(window_.compare().summary()), HasSubstr("step 2 took 5.00 s"));
  EXPECT_THAT(plain(window_.compare().summary()), HasSubstr("median of the run's 3 steps, as in Validation: 5.00 s"));
  EXPECT_THAT(plain(window_.validation().summary().text()), HasSubstr("measured 5.00 s (median of the run's 3 steps"));
  // The figure on top counts what the device reserves.
  EXPECT_THAT(plain(window_.validation().summary().text()), HasSubstr("without the device's reserve"));
}

TEST_F(StaleResults, AComparisonOfThePlanBeforeGoes) {
  load_run();
  window_.validate();
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.validation().validation().has_value(); }, kPatienceMs));
  turn_micro_batch("1");
  EXPECT_TRUE(window_.compare().canvas().timelines().empty());
  EXPECT_THAT(plain(window_.compare().canvas().hint()), HasSubstr("Comes when the plan has been simulated"));
  EXPECT_FALSE(window_.validation().validation().has_value());
  EXPECT_THAT(plain(window_.validation().summary().text()), HasSubstr("Comes when the plan has been simulated"));
  ASSERT_TRUE(compares());
}

TEST_F(StaleResults, AComparisonIsNotMadeTwice) {
  load_run();
  QSignalSpy shown(&window_.compare(), &CompareView::shown);
  window_.show_view(MainWindow::kMemory);
  window_.show_view(MainWindow::kCompare);
  EXPECT_FALSE(window_.compare().is_busy());
  EXPECT_EQ(shown.count(), 0);
}

TEST_F(StaleResults, ARunWhosePlanCannotBeSimulatedSaysWhy) {
  load_run();
  Scenario scenario = window_.document().scenario();
  scenario.file.job.training.global_batch = 7;
  window_.document().edit(std::move(scenario), "global batch 7");
  ASSERT_TRUE(settles());
  EXPECT_THAT(plain(window_.compare().canvas().hint()), HasSubstr("The plan cannot run: global batch 7"));
  window_.validate();
  EXPECT_THAT(plain(window_.validation().summary().text()), HasSubstr("The plan cannot run: global batch 7"));
}

TEST_F(StaleResults, ATimelineOfThePlanBeforeSaysSo) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kTimeline);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  EXPECT_THAT(plain(window_.timeline().note().text()), HasSubstr(" spans"));
  turn_micro_batch("2");
  EXPECT_THAT(plain(window_.timeline().note().text()), HasSubstr("Not of this plan"));
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  EXPECT_THAT(plain(window_.timeline().note().text()), HasSubstr(" spans"));
  Scenario scenario = window_.document().scenario();
  scenario.file.job.plan.zero_stage = 7;
  window_.document().edit(std::move(scenario), "ZeRO stage 7");
  ASSERT_TRUE(settles());
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  EXPECT_TRUE(window_.timeline().canvas().timelines().empty());
  EXPECT_THAT(plain(window_.timeline().canvas().hint()), HasSubstr("The plan cannot run: ZeRO stage is 7"));
}

TEST_F(StaleResults, FiguresOnTopSayWhichPlanTheyAreOf) {
  begin(staged_scenario());
  const auto state = [&] { return plain(window_.headline().state().text()); };
  EXPECT_THAT(state(), Not(HasSubstr("first look")));
  turn_micro_batch("2");
  EXPECT_THAT(state(), HasSubstr("of the plan before"));
  bool looked = false;  // once at least whole segments were shown as such
  QObject::connect(&window_.document(), &Document::evaluated, &window_,
                   [&] { looked = looked || state().find("first look") != std::string::npos; });
  ASSERT_TRUE(settles());
  EXPECT_TRUE(looked);
  EXPECT_THAT(state(), HasSubstr("fits"));
  EXPECT_THAT(state(), Not(HasSubstr("first look")));
}

TEST_F(StaleResults, AnExplanationOfThePlanBeforeGoes) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kExplain);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  ExplainView& explain = window_.explain();
  ASSERT_FALSE(explain.machine().gains().empty());
  turn_micro_batch("2");
  EXPECT_TRUE(explain.machine().gains().empty());
  EXPECT_TRUE(explain.plans().gains().empty());
  EXPECT_THAT(plain(explain.words().toPlainText()), HasSubstr("Comes when the plan has been simulated"));
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  EXPECT_FALSE(explain.machine().gains().empty());
}

TEST_F(StaleResults, PlansOfAnotherJobSayOfWhich) {
  begin(small_scenario());
  PlansView& plans = window_.plans();
  plans.search();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !plans.is_searching(); }, kPatienceMs));
  EXPECT_THAT(plain(plans.status().text()), Not(HasSubstr("another job")));
  plans.pin(0);
  type(window_.start_panel().field("global_batch"), "32");
  EXPECT_THAT(plain(plans.status().text()),
              HasSubstr("Of another job, gpt2-124m on dgx-a100-80gb:1, 16 samples of 1,024 tokens"));
  ASSERT_TRUE(settles());
  plans.pin_current();
  QTableWidget& pinned = plans.comparison();
  const QList<QTableWidgetItem*> found = pinned.findItems("job", Qt::MatchExactly);
  ASSERT_EQ(found.size(), 1);
  EXPECT_THAT(plain(pinned.item(found[0]->row(), 1)->text()), HasSubstr("16 samples"));
  EXPECT_THAT(plain(pinned.item(found[0]->row(), 2)->text()), HasSubstr("32 samples"));
  type(window_.start_panel().field("global_batch"), "16");
  EXPECT_THAT(plain(plans.status().text()), Not(HasSubstr("another job")));
}

}  // namespace
}  // namespace trivium::gui
